/* A host call that throws ends the program with the text of what it threw, and with SIGABRT. */
#include <rill/rill.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/* What a child that runs `work` writes to its standard error, and whether it aborted. */
template <class F> static std::string last_words(F work, bool *aborted) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  static_cast<void>(std::fflush(nullptr));
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(dup2(ends[1], 2));
    work();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char bytes[256];
  for (ssize_t got = 0; (got = read(ends[0], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(got));
  close(ends[0]);
  int state = 0;
  *aborted = waitpid(child, &state, 0) == child && WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
  return text;
}

int main() {
  int wrong = 0;
  const auto expect = [&](const std::string &text, bool aborted, const char *wanted) {
    if (aborted && text.find(wanted) != std::string::npos) return;
    wrong++;
    std::printf("wanted \"%s\", aborted %d: %s\n", wanted, aborted, text.c_str());
  };
  const auto device = [] { return rill::device::open("cpu"); };
  bool aborted = false;
  std::string text = last_words(
      [&] {
        const rill::stream stream(device());
        stream.host_call([] { throw std::runtime_error("out of tea"); });
        stream.synchronize();
      },
      &aborted);
  expect(text, aborted, "a host call threw an exception: out of tea");
  text = last_words(
      [&] {
        const rill::stream stream(device());
        std::string long_one(100, 'x');
        stream.host_call([long_one](rill_status) { throw long_one.size(); });
        stream.synchronize();
      },
      &aborted);
  expect(text, aborted, "not a std::exception");
  text = last_words(
      [&] {
        const int values[2] = { 1, 2 };
        const rill::view<const int> view(values);
        try {
          static_cast<void>(view[2]);
        } catch (const rill::error &e) {
          std::fprintf(stderr, "%s\n", e.what());
        }
        std::abort();
      },
      &aborted);
  expect(text, aborted, "rill::view: index 2 is outside a view of 2 elements");
  return wrong;
}
