// The parser as the tests drive it. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/parser.rs` has them.
module laps_parser_bench (
    input  logic         clk,
    input  logic [607:0] stimulus,
    output logic [255:0] response
);
    logic         out_valid, out_good, out_negative;
    logic [5:0]   out_opcode;
    logic [23:0]  out_destination_qp, out_source_qp, out_psn;
    logic [15:0]  out_path;
    logic [63:0]  out_sent_at, out_received_at;
    laps_parser dut (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_last(stimulus[2]),
        .in_keep(stimulus[3+:64]),
        .in_data(stimulus[67+:512]),
        .out_valid,
        .out_good,
        .out_opcode,
        .out_negative,
        .out_destination_qp,
        .out_source_qp,
        .out_psn,
        .out_path,
        .out_sent_at,
        .out_received_at
    );
    assign response = {31'b0, out_received_at, out_sent_at, out_path, out_psn, out_source_qp, out_destination_qp, out_negative,
                       out_opcode, out_good, out_valid};
endmodule
