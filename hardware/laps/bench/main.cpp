// Drives a model that Verilator made of a bench, for tests in Rust: reads what goes in from the standard input, clock by clock,
// and writes what comes out. A batch is the number of its clocks, then as many stimuli; the answer is as many responses. All
// of it is words of 32 bits as this machine has them. Memories begin with random contents, as those of a chip may.
#include "Vmodel.h"

#include <cstdint>
#include <cstdio>
#include <vector>

static bool read_words(std::uint32_t *words, std::size_t count) {
    return std::fread(words, sizeof(std::uint32_t), count, stdin) == count;
}

int main() {
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(1);
    Vmodel model{&context};
    const std::size_t in = sizeof(model.stimulus) / sizeof(std::uint32_t);
    const std::size_t out = sizeof(model.response) / sizeof(std::uint32_t);
    std::vector<std::uint32_t> stimuli, responses;
    model.clk = 0;
    for (std::uint32_t clocks; read_words(&clocks, 1);) {
        stimuli.resize(clocks * in);
        responses.resize(clocks * out);
        if (!read_words(stimuli.data(), stimuli.size())) return 1;
        for (std::size_t clock = 0; clock < clocks; clock++) {
            // The clock falls as the inputs change: nothing happens then but what follows from the inputs.
            for (std::size_t i = 0; i < in; i++) model.stimulus[i] = stimuli[clock * in + i];
            model.clk = 0;
            model.eval();
            for (std::size_t i = 0; i < out; i++) responses[clock * out + i] = model.response[i];
            model.clk = 1;
            model.eval();
        }
        if (std::fwrite(responses.data(), sizeof(std::uint32_t), responses.size(), stdout) != responses.size()) return 1;
        std::fflush(stdout);
    }
    model.final();
    return 0;
}
