// The chooser as the tests drive it: every port in two vectors, and beside each result the numbers that its operation has seen
// or written. Fields are from the lowest bit up, as `crates/cosim/tests/chooser.rs` has them.
module laps_chooser_bench #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 4,
    parameter TABLE = "exp2.hex"
) (
    input  logic         clk,
    input  logic [191:0] stimulus,
    output logic [447:0] response
);
    logic        reset, in_valid, in_update, in_up, scale_write, seed_write;
    logic [15:0] in_destination, in_path, scale_destination;
    logic [23:0] in_delay, scale_reference;
    logic [17:0] scale_factor;
    logic [63:0] seed;
    assign {seed, seed_write, scale_reference, scale_factor, scale_destination, scale_write, in_delay, in_path,
            in_destination, in_up, in_update, in_valid, reset} = stimulus[183:0];

    logic                   in_ready, out_valid, out_update, out_none;
    logic [DESTINATION-1:0] out_destination;
    logic [PATH-1:0]        out_path;
    laps_chooser #(.PATH(PATH), .DESTINATION(DESTINATION), .TABLE(TABLE)) dut (
        .clk,
        .reset,
        .seed_write,
        .seed,
        .scale_write,
        .scale_destination(scale_destination[DESTINATION-1:0]),
        .scale_factor,
        .scale_reference,
        .in_ready,
        .in_valid,
        .in_update,
        .in_destination(in_destination[DESTINATION-1:0]),
        .in_path(in_path[PATH-1:0]),
        .in_up,
        .in_delay,
        .out_valid,
        .out_update,
        .out_destination,
        .out_path,
        .out_none
    );

    // Each number is held until its operation leaves.
    logic [23:0]  weight;
    logic [39:0]  total;
    logic [319:0] sums;
    laps_delay #(.WIDTH(24), .CLOCKS(5 + 2 * PATH)) weights (.clk, .d(dut.weight8), .q(weight));
    laps_delay #(.WIDTH(40), .CLOCKS(4 + 2 * PATH)) totals (
        .clk,
        .d(40'(dut.update9 ? dut.new_total9 : dut.total9)),
        .q(total)
    );
    generate
        for (genvar l = 0; l < 8; l++) begin : level
            if (l < PATH) begin : used
                laps_delay #(.WIDTH(40), .CLOCKS(2 * (PATH - l) - 1)) sum (
                    .clk,
                    .d(40'(dut.level[l].tree.write ? dut.level[l].tree.changed : dut.level[l].tree.sum)),
                    .q(sums[40*l+:40])
                );
            end else begin : unused
                assign sums[40*l+:40] = '0;
            end
        end
    endgenerate

    assign response = {28'b0, sums, total, weight, 16'(out_path), 16'(out_destination), out_none, out_update, out_valid, in_ready};
endmodule
