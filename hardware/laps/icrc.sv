// The invariant CRC of a frame, a beat of 64 bytes a clock (docs/wire.md, ICRC): the register of CRC-32 after each beat.
//
// The data must be masked: zero before the IPv4 header (14 bytes of the first beat) and behind what is covered, ones where routers
// write. Zeroes behind what is covered are counted as data; `laps_icrc_residue` and `laps_icrc_unwind` take that into account.
//
// Latency: 3 clocks from `in_valid` to `state`. Initiation interval: 1. Hazards: none; a frame's first beat begins anew.
module laps_icrc (
    input  logic         clk,
    input  logic         in_valid,
    input  logic         in_first,
    input  logic [511:0] in_data,
    output logic [31:0]  state
);
    // Reflected: the bit that travels first is the lowest.
    function automatic logic [31:0] step(input logic [31:0] from);
        step = from[0] ? {1'b0, from[31:1]} ^ 32'hEDB88320 : {1'b0, from[31:1]};
    endfunction
    function automatic logic [31:0] step_back(input logic [31:0] from);
        step_back = from[31] ? {from[30:0], 1'b0} ^ 32'hDB710641 : {from[30:0], 1'b0};
    endfunction
    // What each bit of the register gets of a word, of 32 bits of data a row, when `after` bits follow the word.
    function automatic logic [1023:0] rows(input int after);
        logic [31:0] column;
        column = 32'h1;
        rows = '0;
        for (int i = 0; i < after; i++) column = step(column);
        for (int t = 31; t >= 0; t--) begin
            column = step(column);
            for (int i = 0; i < 32; i++) rows[32*i+t] = column[i];
        end
    endfunction
    // After eight bytes of ones; and before that the 14 zeroes in the place of the Ethernet header, backwards.
    function automatic logic [31:0] start();
        start = 32'hFFFFFFFF;
        for (int i = 0; i < 64; i++) start = step({start[31:1], !start[0]});
        for (int i = 0; i < 112; i++) start = step_back(start);
    endfunction
    localparam logic [31:0] START = start();

    // Clock 1: what each word adds. Clock 2: the beat.
    logic [511:0] parts;
    logic [31:0]  beat, all;
    logic [1:0]   valids, firsts;
    generate
        for (genvar w = 0; w < 16; w++) begin : word
            localparam logic [1023:0] ROWS = rows(32 * (15 - w));
            for (genvar i = 0; i < 32; i++) begin : row
                always_ff @(posedge clk) parts[32*w+i] <= ^(in_data[32*w+:32] & ROWS[32*i+:32]);
            end
        end
    endgenerate
    always_comb begin
        all = '0;
        for (int w = 0; w < 16; w++) all = all ^ parts[32*w+:32];
    end

    // Clock 3: the register, which adds like the first word of the beat.
    logic [31:0] was, moved;
    assign was = firsts[1] ? START : state;
    generate
        localparam logic [1023:0] ROWS = rows(480);
        for (genvar i = 0; i < 32; i++) begin : feedback
            assign moved[i] = ^(was & ROWS[32*i+:32]);
        end
    endgenerate
    always_ff @(posedge clk) begin
        valids <= {valids[0], in_valid};
        firsts <= {firsts[0], in_first};
        beat <= all;
        if (valids[1]) state <= moved ^ beat;
    end
endmodule

// Whether the register is that of an intact packet, its ICRC and `zeroes` bytes of 0 included. Combinational.
module laps_icrc_residue (
    input  logic [31:0] state,
    input  logic [5:0]  zeroes,
    output logic        intact
);
    function automatic logic [2047:0] residues();
        logic [31:0] value;
        value = 32'hDEBB20E3;
        for (int i = 0; i < 64; i++) begin
            residues[32*i+:32] = value;
            for (int j = 0; j < 8; j++) value = value[0] ? {1'b0, value[31:1]} ^ 32'hEDB88320 : {1'b0, value[31:1]};
        end
    endfunction
    localparam logic [2047:0] RESIDUES = residues();
    assign intact = state == RESIDUES[32*zeroes+:32];
endmodule

// Takes bytes of 0 out of the register again: the ICRC of what was before them, as it stands in the frame, its first byte lowest.
//
// Latency: 6 clocks. Initiation interval: 1. Hazards: none.
module laps_icrc_unwind (
    input  logic        clk,
    input  logic [31:0] state,
    input  logic [5:0]  zeroes,
    output logic [31:0] icrc
);
    function automatic logic [1023:0] rows(input int back);
        logic [31:0] column;
        rows = '0;
        for (int t = 0; t < 32; t++) begin
            column = 32'h1 << t;
            for (int i = 0; i < back; i++) column = column[31] ? {column[30:0], 1'b0} ^ 32'hDB710641 : {column[30:0], 1'b0};
            for (int i = 0; i < 32; i++) rows[32*i+t] = column[i];
        end
    endfunction
    generate
        for (genvar s = 0; s < 6; s++) begin : stage
            localparam logic [1023:0] ROWS = rows(8 << s);
            logic [31:0] from, back, next;
            logic [5:0]  count, next_count;
            if (s == 0) begin : begins
                assign from = state;
                assign count = zeroes;
            end else begin : goes_on
                assign from = stage[s-1].next;
                assign count = stage[s-1].next_count;
            end
            for (genvar i = 0; i < 32; i++) begin : row
                assign back[i] = ^(from & ROWS[32*i+:32]);
            end
            always_ff @(posedge clk) begin
                next <= count[s] ? back : from;
                next_count <= count;
            end
        end
    endgenerate
    assign icrc = ~stage[5].next;
endmodule
