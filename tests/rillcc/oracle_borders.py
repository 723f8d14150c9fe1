"""Statements of random kernels in which some threads are kept by a border from loops that the others go around alike."""

from oracle_kernels import Block
from oracle_statements import Statements

CONDITIONS = ("i < n", "i + {0} < n", "n > i", "i >= {0} && i < n", "i > {0} && i + {1} <= n", "static_cast<int>(i) > {0}", "t + {0} < a % 300 && i < n",
              "blockIdx.x * threads + t < b * {1}", "i >= a % {1} && i < n - b % 9", "static_cast<int>(i - a % {1}) >= 0 && static_cast<int>(i - a % {1}) < c",
              "!(static_cast<int>(i) - static_cast<int>(b) / 2 < 0 || static_cast<int>(i) - static_cast<int>(b) / 2 >= static_cast<int>(n))",
              "i + (a & 63) >= 64u + {0} && i + (a & 63) < n")  # fmt: skip
LIMITS = ("a % {0}", "b % {0}", "p.u % {0}", "blockIdx.x + {1}", "{0}", "min(b, {0}u)", "(n & {1}) + 1")
UPDATES = ("h = h * 31 + in[{k} * 8 + t];", "h ^= in[{k} * 8 + t] + in[{k}] * {0};", "h += in[{k} + i];", "s = s * 0.5f + x[t] - x[{k}];",
           "h += ({k} * 77 + {0}) / (i - low);", "h += h / (in[{k} * 8 + t] | 1);", "s += h > {1}u * {k} ? x[t] : s;", "h = h * 3 + {k};",
           "out[i] = h + {k};", "h += static_cast<unsigned>(__popc(in[{k} * 8 + t] ^ h));", "s = fmaxf(s, sqrtf(fabsf(x[t]))) + {0};",
           "h = max(h, in[t + {0}]) ^ h << 3;", "h = in[(h ^ in[{k} + t]) & 1023] ^ h >> 7;", "s += x[in[{k} * 8 + t] & 255];",
           "h = (h ^ in[t * 3 + {k}]) * 16777619u;", "h += in[(1000 - i - {k}) & 1023] ^ {0};")  # fmt: skip


class Borders(Statements):
    """Threads beyond a border would divide by 0."""

    def filled(self, text, **names):
        return text.format(self.below(40), 1 + self.below(20), **names)

    def bordered_loop(self):
        k = self.new("k")
        head = "for (unsigned %s = 0; %s < %s; %s++) {" % (k, k, self.one_of(LIMITS).format(1 + self.below(40), 1 + self.below(15)), k)
        if self.chance(20):
            head = "for (unsigned %s = 0; %s != n * %d; %s += n) {" % (k, k, self.below(4), k)
            return Block([[head, ["h = h * 5 + in[t];", "s = s / 2 + x[t];"]]])
        body = [self.filled(self.one_of(UPDATES), k=k) for _ in range(1 + self.below(3))]
        if self.chance(15):
            other = self.new("k")
            head_of_it = "for (unsigned %s = %s & 1; %s < %d; %s++) {" % (other, k, other, self.below(7), other)
            body = [Block([[head_of_it, [text.replace(k, other) for text in body]]])]
        return Block([[head, body]])

    def after_border(self, depth):
        nodes = []
        for _ in range(1 + self.below(3)):
            if depth > 0 and self.chance(30):
                nodes.append(Block([["if (%s) {" % self.filled(self.one_of(CONDITIONS)), self.after_border(depth - 1)]]))
            elif self.chance(25):
                nodes.append(self.filled(self.one_of(UPDATES), k="%du" % self.below(9)))
            else:
                nodes.append(self.bordered_loop())
        return nodes

    def border(self):
        """The statements of a kernel."""
        low = self.below(6)
        condition = "i > low && " * self.chance(50) + "(%s)" % self.filled(self.one_of(CONDITIONS))
        nodes: list = ["const unsigned low = %d;" % low, "float s = 0;"]
        inside = self.after_border(2)
        if "i > low" not in condition:
            nodes[0] = "const unsigned low = 0xffffffffu;"
        if self.chance(60):
            nodes += ["if (!(%s)) return;" % condition, *inside]
        else:
            nodes.append(Block([["if (%s) {" % condition, inside]]))
        if self.chance(30):
            nodes += ["__syncthreads();" if self.chance(50) else "h += __syncthreads_count(h & 1);"]
        return [*nodes, "h = h * 31 + bits(s);"]
