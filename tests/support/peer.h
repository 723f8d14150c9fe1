/* A second process for a test: the test program again, with a role.
 *
 *     static void child_reads(void) {                       // a test like any other, on the same device
 *       rill_ipc_handle handle;
 *       peer_receive(peer_parent(), &handle, sizeof handle);
 *       ...
 *     }
 *     static void shares(void) {
 *       struct peer *peer = peer_start("child_reads");
 *       peer_send(peer, &handle, sizeof handle);
 *       peer_ends(peer);                                    // and all its asserts held
 *     }
 *     int main(int argc, char **argv) {
 *       static const struct test roles[] = { TEST(child_reads) }, tests[] = { TEST(shares) };
 *       if (argc > 1) return PEER_MAIN(argv[1], roles);
 *       return RUN_ON_EACH_DEVICE("...", tests);
 *     }
 *
 * The two order themselves by what they send.  A wait for a peer that has ended, or a very long wait, fails.
 */
#ifndef RILL_TESTS_SUPPORT_PEER_H
#define RILL_TESTS_SUPPORT_PEER_H

#include "testing.h"

struct peer;

struct peer *peer_start(const char *role);
struct peer *peer_parent(void); /* of a role: the process that started it */

void peer_send(struct peer *peer, const void *data, size_t size);
void peer_receive(struct peer *peer, void *data, size_t size);

/* One letter, for "go on". */
void peer_tell(struct peer *peer, char letter);
void peer_awaits(struct peer *peer, char letter);

/* Waits for its end; the test fails if the role failed. */
void peer_ends(struct peer *peer);

/* Kills it, wherever it is, and waits for its end. */
void peer_dies(struct peer *peer);

int peer_main(const char *role, const struct test *roles, size_t count);
#define PEER_MAIN(role, roles) peer_main((role), roles, sizeof(roles) / sizeof *(roles))

#endif
