// The deparser as the tests drive it. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/deparser.rs` has them.
module laps_deparser_bench (
    input  logic         clk,
    input  logic [703:0] stimulus,
    output logic [607:0] response
);
    logic         out_valid, out_last;
    logic [511:0] out_data;
    logic [63:0]  out_keep;
    laps_deparser dut (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_last(stimulus[2]),
        .in_ours(stimulus[3]),
        .in_stamp(stimulus[4]),
        .in_keep(stimulus[32+:64]),
        .in_data(stimulus[96+:512]),
        .in_path(stimulus[608+:16]),
        .in_port(stimulus[624+:16]),
        .in_now(stimulus[640+:64]),
        .*
    );
    assign response = {out_data, out_keep, 30'b0, out_last, out_valid};
endmodule
