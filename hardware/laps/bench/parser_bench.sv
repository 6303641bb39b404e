// The parser as the tests drive it. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/parser.rs` has them.
module laps_parser_bench (
    input  logic         clk,
    input  logic [607:0] stimulus,
    output logic [799:0] response
);
    logic         out_valid, out_accepted, out_ack_request;
    logic [95:0]  out_ethernet;
    logic [7:0]   out_tos, out_ttl, out_opcode, out_flags;
    logic [63:0]  out_addresses;
    logic [15:0]  out_source_port, out_path, out_payload_len;
    logic [23:0]  out_destination_qp, out_psn, out_source_qp;
    logic [127:0] out_standard;
    logic [31:0]  out_immediate;
    logic [255:0] out_extension;
    laps_parser dut (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_last(stimulus[2]),
        .in_keep(stimulus[32+:64]),
        .in_data(stimulus[96+:512]),
        .*
    );
    assign response = {
        32'(out_accepted), out_extension, out_immediate, out_standard, out_ethernet, out_addresses, out_payload_len,
        out_source_port, out_path, out_flags, out_tos, out_ttl, out_opcode, 7'b0, out_ack_request, out_psn, out_source_qp,
        out_destination_qp, 32'(out_valid)
    };
endmodule
