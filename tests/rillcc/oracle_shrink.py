"""Takes parts from a kernel while it still fails: statements, the braces around them, and parts of expressions."""

import re

import oracle_kernels
import oracle_run
from oracle_kernels import Block, Kernel

AT_ONCE = 60  # variants that are compiled as one source
SECONDS = 5


def edits_of(nodes, path=()):
    """Where something can be taken: (path, what), the path being indices of statements and parts."""
    found = []
    for k, node in enumerate(nodes):
        here = (*path, k)
        found.append((here, "remove"))
        if isinstance(node, Block):
            found.append((here, "unwrap"))
            found += [((*here, part), "part") for part in range(1, len(node.parts))]
            for part, (_, body) in enumerate(node.parts):
                found += edits_of(body, (*here, part))
    return found


def expression_edits_of(nodes, path=()):
    """Each pair of parentheses in a statement, to be replaced by a number or by one side."""
    found = []
    for k, node in enumerate(nodes):
        here = (*path, k)
        texts = [node] if isinstance(node, str) else [head for head, _ in node.parts]
        for which, text in enumerate(texts):
            for start, end in parentheses(text):
                inside = text[start + 1 : end]
                for new in ("1u", "t", *re.split(r" (?:[-+*/%^&|?:]|>>|<<|&&|\|\|) ", inside)):
                    if new != inside and is_balanced(new):
                        found.append((here, (which, start, end, new)))
        if isinstance(node, Block):
            for part, (_, body) in enumerate(node.parts):
                found += expression_edits_of(body, (*here, part))
    return found


def is_balanced(text):
    """Returns whether each bracket of a text has its other one: without that, nobody can say which kernel a compiler is
    about."""
    left = re.sub(r"[^(){}\[\]]", "", text)
    while left != (left := re.sub(r"\(\)|\{\}|\[\]", "", left)):
        pass
    return not left


def parentheses(text):
    """Returns the positions of matching parentheses, with the name of a function before them."""
    stack, found = [], []
    for k, letter in enumerate(text):
        if letter == "(":
            stack.append(k)
        elif letter == ")" and stack:
            found.append((stack.pop(), k))
    return found


def edited(nodes, edits, path=()):
    """Returns the statements with all these edits made."""
    result: list = []
    for k, node in enumerate(nodes):
        here = (*path, k)
        whats = [what for place, what in edits if place == here]
        if "remove" in whats:
            continue
        if isinstance(node, str):
            text = node
            for _, start, end, new in whats:
                text = text[:start] + "(" + new + ")" + text[end + 1 :]
            result.append(text)
            continue
        parts = [[head, edited(body, edits, (*here, n))] for n, (head, body) in enumerate(node.parts)]
        for what in whats:
            if isinstance(what, tuple):
                which, start, end, new = what
                parts[which][0] = parts[which][0][:start] + "(" + new + ")" + parts[which][0][end + 1 :]
        if "unwrap" in whats:
            result += [inner for _, body in parts for inner in body]
        else:
            parts = [part for n, part in enumerate(parts) if ((*here, n), "part") not in edits]
            result.append(Block(parts, node.end))
    return result


def still_failing(variants, failure, fill):
    """Returns the numbers of the variants, lists of statements, that fail where the kernel failed."""
    failing = set()
    for first in range(0, len(variants), AT_ONCE):
        batch = variants[first : first + AT_ONCE]
        kernels = [Kernel("k%d" % k, nodes, failure.kernel.dimensions) for k, nodes in enumerate(batch)]
        for found in check_what_compiles(kernels, failure, fill):
            if found.form == failure.form and not found.text.startswith(oracle_run.REFUSED):
                failing.add(first + int(found.kernel.name[1:]))
    return failing


def check_what_compiles(kernels, failure, fill):
    """Checks the kernels that the C++ compiler takes."""
    while kernels:
        try:
            return oracle_run.check(kernels, ((failure.form, (failure.level,)),), fill, SECONDS)
        except oracle_run.CompileError as error:
            bad = {int(line) for line in re.findall(r"kernels\.kernel\.cu:(\d+):\d+: error", str(error))}
            kept, line = [], oracle_kernels.HEAD.count("\n") + 1
            for kernel in kernels:
                end = line + kernel.text().count("\n") + 1
                if not any(line <= number < end for number in bad):
                    kept.append(kernel)
                line = end
            if len(kept) == len(kernels):  # what was said is about no kernel
                half = len(kernels) // 2
                halves = (kernels[:half], kernels[half:]) if half else ()
                return [found for some in halves for found in check_what_compiles(some, failure, fill)]
            kernels = kept
    return []


def size(nodes):
    return sum(len(line) + 20 for line in oracle_kernels.render(nodes))


def shrink(failure, fill, show=lambda text: None):
    """Returns the smallest kernel found that still fails."""
    nodes, rounds = failure.kernel.nodes, 0
    for find in (edits_of, expression_edits_of, edits_of):
        while True:
            edits = find(nodes)
            single = [edited(nodes, [edit]) for edit in edits]
            good = [edits[k] for k in sorted(still_failing(single, failure, fill))]
            if find is expression_edits_of:
                good = one_each(good)
            rounds += 1
            show("round %d: %d lines, %d of %d edits" % (rounds, len(oracle_kernels.render(nodes)), len(good), len(edits)))
            if not good:
                break
            chosen = [good[: -(-len(good) * k // 16)] for k in range(16, 0, -1)] + [[edit] for edit in good]
            variants = sorted((edited(nodes, some) for some in chosen), key=size)[:AT_ONCE]
            failing = still_failing(variants, failure, fill)
            if not failing or size(variants[min(failing)]) >= size(nodes):
                break
            nodes = variants[min(failing)]
    return Kernel(failure.kernel.name, nodes, failure.kernel.dimensions)


def one_each(edits):
    """At most one edit of each statement: the shortest."""
    best = {}
    for place, what in edits:
        if place not in best or what[2] - what[1] - len(what[3]) > best[place][2] - best[place][1] - len(best[place][3]):
            best[place] = what
    return list(best.items())
