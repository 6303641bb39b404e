// A queue of 2^DEPTH words in a memory, with valid and ready at both ends as AXI-Stream has them: what is valid stays, and stays the
// same, until it is taken.
//
// Latency: 2 clocks from an accepted word to `out_valid`, if nothing is before it. Initiation interval: 1 at either end.
// Hazards: none. `free_count` is how many words it takes; whoever sends with some in flight counts on it rather than on `in_ready`.
module laps_fifo #(
    parameter int unsigned WIDTH = 8,
    parameter int unsigned DEPTH = 4
) (
    input  logic             clk,
    input  logic             reset,

    input  logic             in_valid,
    output logic             in_ready,
    input  logic [WIDTH-1:0] in_data,

    output logic             out_valid,
    input  logic             out_ready,
    output logic [WIDTH-1:0] out_data,

    output logic [DEPTH:0]   free_count
);
    // One bit more than an address, so that full and empty differ.
    logic [DEPTH:0] written, taken, next_taken;
    logic           write, take;
    assign in_ready = free_count != '0;
    assign write = in_valid && in_ready;
    assign take = out_valid && out_ready;
    assign next_taken = taken + {{DEPTH{1'b0}}, take};
    assign free_count = (DEPTH + 1)'(1 << DEPTH) - (written - taken);

    laps_ram #(.WIDTH(WIDTH), .ADDRESS(DEPTH)) words (
        .clk,
        .write,
        .write_address(written[DEPTH-1:0]),
        .write_data(in_data),
        .read_address(next_taken[DEPTH-1:0]),
        .read_data(out_data)
`ifdef FORMAL
        ,
        .watch(watch[DEPTH-1:0]),
        .watched
`endif
    );

    always_ff @(posedge clk) begin
        if (reset) begin
            written <= '0;
            taken <= '0;
            out_valid <= 1'b0;
        end else begin
            if (write) written <= written + 1'b1;
            taken <= next_taken;
            // A word is read a clock after it is written at the earliest.
            out_valid <= written != next_taken;
        end
    end

`ifdef FORMAL
    // Any one word is watched from its writing on: nobody writes over it, and it leaves in its turn, once, as it came.
    (* anyconst *) logic [DEPTH:0] watch;
    logic [WIDTH-1:0] watched, word;
    logic [DEPTH:0]   count, position;
    logic             begun, held;
    logic             was_valid, was_taken;
    logic [WIDTH-1:0] was_data;
    assign count = written - taken;
    assign position = watch - taken;
    assign held = position < count;
    initial begun = 1'b0;
    always_ff @(posedge clk) begin
        begun <= 1'b1;
        if (write && written == watch) word <= in_data;
        was_valid <= out_valid && begun;
        was_taken <= out_ready;
        was_data <= out_data;
    end
    always_comb begin
        assume (reset == !begun);
        if (begun) begin
            assert (count <= (DEPTH + 1)'(1 << DEPTH));
            assert (!out_valid || count != '0);
            assert (!held || watched == word);
            assert (!out_valid || taken != watch || out_data == word);
            assert (!was_valid || was_taken || (out_valid && out_data == was_data));
        end
    end
`endif
endmodule
