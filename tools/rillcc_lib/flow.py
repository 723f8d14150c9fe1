"""Algorithms on control-flow graphs: dictionaries from a node to the list of its successors."""

EXIT = "exit"


def reachable(successors, start, stop=()):
    """Returns the nodes that can be reached from `start`, including `start` itself. Paths do not continue after a node
    of `stop`."""
    seen, work = set(), list(start)
    while work:
        node = work.pop()
        if node in seen:
            continue
        seen.add(node)
        if node not in stop:
            work += successors.get(node, ())
    return seen


def reverse(successors):
    predecessors = {node: [] for node in successors}
    for node, others in successors.items():
        for other in others:
            predecessors.setdefault(other, []).append(node)
    return predecessors


def postorder(successors, start):
    seen, order, work = {start}, [], [(start, iter(successors.get(start, ())))]
    while work:
        node, others = work[-1]
        other = next((other for other in others if other not in seen), None)
        if other is None:
            order.append(node)
            work.pop()
        else:
            seen.add(other)
            work.append((other, iter(successors.get(other, ()))))
    return order


def dominators(successors, start):
    """Returns the immediate dominator of each reachable node; the start is its own."""
    order = postorder(successors, start)
    number = {node: i for i, node in enumerate(order)}
    predecessors = reverse(successors)
    found = {start: start}
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == start:
                continue
            best = None
            for other in predecessors[node]:
                if other not in found:
                    continue
                if best is None:
                    best = other
                    continue
                a, b = best, other
                while a != b:
                    while number[a] < number[b]:
                        a = found[a]
                    while number[b] < number[a]:
                        b = found[b]
                best = a
            if found.get(node) != best:
                found[node] = best
                changed = True
    return found


def dominates(immediate, a, b):
    while b != a:
        if immediate[b] == b:
            return False
        b = immediate[b]
    return True


def postdominators(successors, exits):
    """Returns the immediate postdominator of each node from which one of `exits` can be reached. EXIT is the common
    successor of all exits."""
    backward = {node: list(others) for node, others in reverse(successors).items()}
    backward[EXIT] = list(exits)
    return dominators(backward, EXIT)
