// Makes frames of answers and probes, two beats each; IPv4 checksum and ICRC are left to `laps_deparser`.
//
// Latency: the first beat stands in the clock in which the record does. Initiation interval: 2 clocks a record.
// Hazards: none; `in_data` must stay from the first beat that is taken to the second.
module laps_builder (
    input  logic         clk,
    input  logic         reset,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [488:0] in_data,

    output logic         out_valid,
    input  logic         out_ready,
    output logic         out_last,
    output logic [511:0] out_data,
    output logic [63:0]  out_keep
);
    localparam logic [1:0] ACK = 0, NACK = 1, REPLY = 2;
    logic [1:0]  kind;
    logic [47:0] to_mac, from_mac;
    logic [5:0]  dscp;
    logic        marked;
    logic [31:0] from_address, to_address;
    logic [15:0] source_port, path;
    logic [23:0] to_qp, from_qp, psn, expected;
    logic [63:0] sack, stamp, arrived_at;
    assign {kind, to_mac, from_mac, dscp, marked, from_address, to_address, source_port, to_qp, from_qp, path, psn, expected,
            sack, stamp, arrived_at} = in_data;

    // IPv4 to ICRC.
    logic [15:0]  total;
    logic [7:0]   opcode;
    logic [63:0]  common;
    // Behind the PSN, the ICRC included.
    logic [591:0] rest;
    logic [63:0]  keep;
    assign common = {8'h70, 8'h02, path, 8'h00, from_qp};
    always_comb begin
        case (kind)
            ACK: begin
                total = 16'd88;
                opcode = 8'hd1;
                keep = 64'h3f_ffff_ffff;
                rest = {32'h1f00_0000, common, 8'h0, expected, 16'd1, 15'b0, marked, sack, stamp, arrived_at, 240'b0};
            end
            NACK: begin
                total = 16'd68;
                opcode = 8'hd1;
                keep = 64'h3_ffff;
                rest = {32'h7000_0000, common, 8'h0, expected, sack, 400'b0};
            end
            REPLY: begin
                total = 16'd68;
                opcode = 8'hda;
                keep = 64'h3_ffff;
                rest = {common, stamp, arrived_at, 400'b0};
            end
            default: begin
                // A probe.
                total = 16'd60;
                opcode = 8'hd9;
                keep = 64'h3ff;
                rest = {common, stamp, 464'b0};
            end
        endcase
    end
    logic [1023:0] frame;
    assign frame = {to_mac, from_mac, 16'h0800, 8'h45, dscp, 2'b10, total, 32'h0000_4000, 8'd64, 8'd17, 16'h0, from_address,
                    to_address, source_port, 16'd4791, total - 16'd20, 16'h0, opcode, 8'h00, 16'hffff, 8'h00, to_qp, 8'h00,
                    kind[1] ? 24'b0 : psn, rest};

    logic second;
    assign out_valid = in_valid;
    assign out_last = second;
    assign out_keep = second ? keep : '1;
    assign in_ready = out_ready && second;
    always_comb begin
        for (int i = 0; i < 64; i++) out_data[8*i+:8] = second ? frame[511-8*i-:8] : frame[1023-8*i-:8];
    end
    always_ff @(posedge clk) begin
        if (out_valid && out_ready) second <= !second;
        if (reset) second <= 1'b0;
    end
endmodule
