// Xoshiro256++ (Blackman and Vigna, 2019), the generator of the simulator: the upper 32 bits of each number.
//
// Latency: `draw` holds the number of an `advance` four clocks after it.
// Initiation interval: 1. The state moves in one clock; the two sums of 64 bits are made in halves.
// Hazards: none. Numbers asked for before a seed are not random.
module laps_xoshiro (
    input  logic        clk,
    // Four writes, the state's first word first.
    input  logic        seed_write,
    input  logic [63:0] seed,
    input  logic        advance,
    output logic [31:0] draw
);
    logic [63:0] s0, s1, s2, s3;
    logic [63:0] mixed2, mixed3;
    assign mixed2 = s2 ^ s0;
    assign mixed3 = s3 ^ s1;

    always_ff @(posedge clk) begin
        if (seed_write) begin
            s0 <= s1;
            s1 <= s2;
            s2 <= s3;
            s3 <= seed;
        end else if (advance) begin
            s0 <= s0 ^ mixed3;
            s1 <= s1 ^ mixed2;
            s2 <= mixed2 ^ {s1[46:0], 17'b0};
            s3 <= {mixed3[18:0], mixed3[63:19]};
        end
    end

    // rotl(s0 + s3, 23) + s0, of which the upper half is wanted.
    logic [32:0] low1;
    logic [31:0] high1a, high1b;
    logic [63:0] start1, start2, sum2, turned2;
    logic [32:0] low3;
    logic [31:0] high3a, high3b;
    assign turned2 = {sum2[40:0], sum2[63:41]};

    always_ff @(posedge clk) begin
        low1 <= {1'b0, s0[31:0]} + {1'b0, s3[31:0]};
        high1a <= s0[63:32];
        high1b <= s3[63:32];
        start1 <= s0;

        sum2 <= {high1a + high1b + {31'b0, low1[32]}, low1[31:0]};
        start2 <= start1;

        low3 <= {1'b0, turned2[31:0]} + {1'b0, start2[31:0]};
        high3a <= turned2[63:32];
        high3b <= start2[63:32];

        draw <= high3a + high3b + {31'b0, low3[32]};
    end
endmodule
