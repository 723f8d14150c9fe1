"""Systematic kernels: every ordered pair of functions by which threads synchronize, in four surroundings, and every kind of
division of uniform numbers under conditions that are false for lane 0."""

import itertools

from oracle_kernels import INTEGERS, SIGNED, Block, Kernel

BEGIN = (
    "const unsigned threads = blockDim.x, t = threadIdx.x, i = blockIdx.x * threads + t, lane = t & 31;",
    "unsigned live = threads - (t & ~31u) >= 32 ? ~0u : (1u << (threads & 31)) - 1;",
    "unsigned h = in[i & 1023];",
)
# Each makes another h. MASK stands for one of the masks that a source may have there, NEW for the name of a variable.
OF_BLOCK = {
    "barrier": "__syncthreads();",
    "count": "h = h * 31 + static_cast<unsigned>(__syncthreads_count(h & 1));",
    "and": "h = h * 31 + static_cast<unsigned>(__syncthreads_and(h | (a & 1)));",
    "or": "h = h * 31 + static_cast<unsigned>(__syncthreads_or((h & 63) == 5));",
    "block_sum": "h = h * 31 + rill_block_sum(h);",
    "block_max": "h = h * 31 + static_cast<unsigned>(rill_block_max(static_cast<int>(h)));",
}
OF_WARP = {
    "syncwarp": "__syncwarp(MASK);",
    "shfl": "h = h * 31 + __shfl_sync(MASK, h, static_cast<int>(h & 31));",
    "shfl_constant": "h = h * 31 + static_cast<unsigned>(__shfl_sync(MASK, static_cast<int>(h), 1, 8));",
    "shfl_up": "h = h * 31 + __shfl_up_sync(MASK, h, 1);",
    "shfl_down": "h = h * 31 + fold(__shfl_down_sync(MASK, h * 0x100000001ull, 2));",
    "shfl_xor": "h = h * 31 + bits(__shfl_xor_sync(MASK, static_cast<float>(h & 0xffff), 5));",
    "any": "h = h * 31 + static_cast<unsigned>(__any_sync(MASK, (h & 63) == 5));",
    "all": "h = h * 31 + static_cast<unsigned>(__all_sync(MASK, h & 63));",
    "ballot": "h = h * 31 + __ballot_sync(MASK, h & 1);",
    "match_any": "h = h * 31 + __match_any_sync(MASK, h & 3);",
    "match_all": "int NEW; h = h * 31 + __match_all_sync(MASK, h >> 31, &NEW); h += static_cast<unsigned>(NEW);",
    "reduce_add": "h = h * 31 + __reduce_add_sync(MASK, h);",
    "reduce_min": "h = h * 31 + static_cast<unsigned>(__reduce_min_sync(MASK, static_cast<int>(h)));",
    "reduce_xor": "h = h * 31 + __reduce_xor_sync(MASK, h);",
    "warp_sum": "h = h * 31 + rill_warp_sum(h);",
}
BETWEEN = ("", "h ^= in[h & 1023];", "if (lane >= 3) h += b;", "h += uniform; uniform = uniform * 3 + a;")
RETURN = (
    "const bool gone = (in[(i + 7) & 1023] & 7) == 3;",
    "live = __ballot_sync(~0u, !gone);",
    "if (gone) { out[i] = h; return; }",
)


def surrounded(where, body, of_block):
    if where == "alone":
        return body
    if where == "after a return":
        return [*RETURN, *body]
    if where == "in a loop":
        return [Block([["for (unsigned k = 0; k < (a & 3) + 1; k++) {", body]])]
    first = "unsigned w = in[(i + 11) & 1023] & 3;"
    vote = "__syncthreads_or(%s)" if of_block else "__any_sync(live, %s)"
    return [first, Block([["do {", body]], "} while (%s);" % (vote % "w != 0 && --w > 0"))]


WHERE = ("alone", "after a return", "in a loop", "in a loop that a vote ends")


def pairs():
    every = {**OF_BLOCK, **OF_WARP}
    for number, ((one, two), where) in enumerate(itertools.product(itertools.product(every, every), WHERE)):
        mask = ("~0u", "live")[number // len(WHERE) % 2]
        texts = [every[name].replace("MASK", mask).replace("NEW", new) for name, new in ((one, "first"), (two, "second"))]
        between = BETWEEN[number // 7 % len(BETWEEN)]
        body = [texts[0], *([between] if between else []), texts[1]]
        start = ["unsigned uniform = b;"] if "uniform" in between else []
        nodes = surrounded(where, body, one in OF_BLOCK or two in OF_BLOCK)
        yield [*BEGIN, *start, *nodes, "out[i] = h;"]


def divisions():
    places = {
        "static_cast<%s>(b)": "static_cast<%s>(a)",
        "static_cast<%s>(blockIdx.x + 3)": "static_cast<%s>(blockIdx.x * 7 + 53)",
        "static_cast<%s>(shared[0])": "static_cast<%s>(shared[1])",
    }
    conditions = ("lane >= 3", "(in[i & 1023] & 1) != 0 && lane != 0")
    for type_, operator, (divisor, dividend), condition in itertools.product(INTEGERS, "/%", places.items(), conditions):
        quotient = "%s %s %s" % (dividend % type_, operator, divisor % type_)
        offset = " + 128" if type_ in SIGNED else ""
        index = "(%s & 255)" % quotient if operator == "/" else quotient + offset
        shared = ["__shared__ unsigned shared[2];", "if (t == 0) shared[0] = b, shared[1] = a;", "__syncthreads();"]
        for use in ("h = in[%s + t];" % index, "h = static_cast<unsigned>(%s);" % quotient):
            nodes = [*BEGIN, "h = 1;", *(shared if "shared" in divisor else []), "if (%s) %s" % (condition, use), "out[i] = h;"]
            yield nodes


def kernels():
    """Kernels of both kinds, the divisions first."""
    return [Kernel("k%d" % k, nodes, 1) for k, nodes in enumerate([*divisions(), *pairs()])]
