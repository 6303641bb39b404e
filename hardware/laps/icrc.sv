// The CRC-32 of Ethernet over 64 bytes a clock, the lowest bit of byte 0 first.
//
// Latency: `state` of a beat is there two clocks after it. Initiation interval: 1.
// Hazards: none: what depends on the state of the beat before is 32 bits wide and takes one clock.
// `ENDS` tells which state a good packet leaves, with its CRC in it and k zero bytes behind it.
module laps_icrc (
    input  logic         clk,
    input  logic         in_valid,
    // The state before is 0.
    input  logic         in_first,
    input  logic [511:0] in_data,
    output logic [31:0]  state,
    // Of the k zero bytes behind the end of a packet.
    input  logic [5:0]   zeros,
    output logic         good
);
    // A bit that enters a state of 0 has become `value` 512 - i steps later: so of each bit of the result, which of the data
    // enter it.
    function automatic logic [31:0] step(input logic [31:0] value);
        step = {1'b0, value[31:1]} ^ (value[0] ? 32'hedb88320 : 32'h0);
    endfunction
    function automatic logic [512*32-1:0] rows(input logic [31:0] first);
        logic [31:0] value;
        value = first;
        for (int i = 511; i >= 0; i--) begin
            value = step(value);
            for (int b = 0; b < 32; b++) rows[512*b+i] = value[b];
        end
    endfunction
    function automatic logic [64*32-1:0] ends(input logic [31:0] first);
        logic [31:0] value;
        value = first;
        for (int k = 0; k < 64; k++) begin
            ends[32*k+:32] = value;
            for (int bits = 0; bits < 8; bits++) value = step(value);
        end
    endfunction
    localparam logic [512*32-1:0] ROWS = rows(32'h1);
    localparam logic [64*32-1:0] ENDS = ends(32'hdebb20e3);

    // In eight parts, so that no gate is wide.
    logic [255:0] parts, parts1;
    logic [31:0]  carried;
    logic         valid1, first1;
    generate
        for (genvar b = 0; b < 32; b++) begin : of_bit
            for (genvar p = 0; p < 8; p++) begin : part
                assign parts[8*b+p] = ^(in_data[64*p+:64] & ROWS[512*b+64*p+:64]);
            end
            // The state enters as the first 32 bits do.
            assign carried[b] = ^((first1 ? 32'h0 : state) & ROWS[512*b+:32]) ^ ^parts1[8*b+:8];
        end
    endgenerate

    always_ff @(posedge clk) begin
        valid1 <= in_valid;
        first1 <= in_first;
        parts1 <= parts;
        if (valid1) state <= carried;
    end
    assign good = state == ENDS[32*zeros+:32];
endmodule
