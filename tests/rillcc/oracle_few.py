"""Statements of random kernels in which one thread of each row, one row or one thread of the block has more to do, and of
kernels in which no thread depends on its warp."""

from oracle_borders import LIMITS, Borders
from oracle_kernels import Block

CONDITIONS = ("threadIdx.x == {0}", "threadIdx.x + 1 == blockDim.x", "t == {0}", "threadIdx.x == (b & {0})", "threadIdx.y == {1}", "threadIdx.x == 0",
              "threadIdx.z + 1 == blockDim.z", "threadIdx.x + {1} == {0}", "t == threads - 1", "{0} - threadIdx.x == 1u", "threadIdx.x - {1} == 4u", "blockDim.y == threadIdx.y + 1")  # fmt: skip
OTHERS = ("i < n", "(in[t & 63] & 1) != 0", "a > {0}", "t > {1}", "h > n", "blockIdx.x > 0", "i + {0} < n")
STORES = ("words[4 * t] = h + {0};", "words[4 * t + 1] ^= in[t + {0}];", "words[4 * t + 1] = in[i & 511] / (h | 1);", "words[4 * t] += x[t & 255] > 0.5f ? {0} : h;")
BETWEEN = ("h = h * 31 + words[4 * t];", "h ^= in[t + {0}];", "words[4 * t] = h;", "h += words[4 * t + 1] * {0} + in[i & 127];")


class Few(Borders):
    def few_branch(self):
        parts = [self.filled(self.one_of(CONDITIONS))]
        while self.chance(40):
            parts.insert(self.below(2), self.filled(self.one_of(OTHERS)))
        body: list = [self.filled(self.one_of(STORES)) for _ in range(1 + self.below(2))]
        if self.chance(20):
            body.append(Block([["if (%s) {" % self.filled(self.one_of(OTHERS)), [self.filled(self.one_of(STORES))]]]))
        return Block([["if (%s) {" % (" && ".join(parts) if self.chance(90) else " || ".join(parts)), body]])

    def few(self):
        """The statements of a kernel: rounds, in which threads store, a few of them store more, and then all read what
        others have stored."""
        body: list = []
        for _ in range(1 + self.below(4)):
            body += [self.filled(self.one_of(BETWEEN)) for _ in range(self.below(3))]
            body.append(self.few_branch())
        read = "h = h * 31 + words[4 * ((t + %d) %% threads) + %d];" % (self.below(40), self.below(2))
        body += ["__syncthreads();", read, "__syncthreads();"] if self.chance(80) else ["h = h * 31 + words[4 * t + 1];"]
        if self.chance(40):
            k = self.new("k")
            body = [Block([["for (unsigned %s = 0; %s < (b & 3) + 1; %s++) {" % (k, k, k), body]])]
        if self.chance(20):
            body.insert(0, "if (i >= n) return;")
        return body

    def columns(self):
        """The statements of a kernel: loops in which neighbours read neighbouring elements, and keep little else."""
        type_, k = self.one_of(("unsigned", "unsigned", "float", "double")), self.new("k")
        number = "static_cast<%s>(%%s)" % type_
        texts = (
            "s = s / 3 + %s;" % number % self.filled("in[{k} * 8 + threadIdx.x]", k=k),
            "s = s * 31 + %s;" % number % self.filled("(in[{k} + threadIdx.x] >> {1})", k=k),
            "s += %s * %s;" % (number % "in[threadIdx.x]", number % self.filled("{k} + {0}", k=k)),
        )
        nodes: list = ["%s s = %s;" % (type_, self.one_of(("0", "i", "t * 3")))]
        for _ in range(1 + self.below(2)):
            head = "for (unsigned %s = 0; %s < %s; %s++) {" % (k, k, self.one_of(LIMITS).format(1 + self.below(40), 1 + self.below(15)), k)
            nodes.append(Block([[head, [self.one_of(texts) for _ in range(1 + self.below(2))]]]))
            if self.chance(30):
                nodes.append("s -= %s;" % self.one_of(("static_cast<%s>(t)" % type_, "1")))
        return [*nodes, "h = %s ^ i;" % ("s" if type_ == "unsigned" else "bits(s)")]
