// Makes a frame ready for the line: writes path, UDP source port and time stamp, clears the UDP checksum, and works out the IPv4
// checksum and the ICRC. Frames that are not packets of ours pass as they are.
//
// Beats are as those of `laps_parser`. What comes with a frame counts in its first beat. The frame has all its lengths, and room for
// the ICRC as its last four bytes; data packets, probes and notices have a time stamp. Any bytes behind the packet are kept. So is a
// pull target: it lies behind all that is written, and is the host's affair.
//
// Latency: 15 clocks a beat. Initiation interval: 1 beat, of one frame or another; nothing stalls.
// Hazards: none. After `reset` the next beat is a frame's first.
module laps_deparser (
    input  logic         clk,
    input  logic         reset,

    input  logic         in_valid,
    input  logic         in_last,
    input  logic [511:0] in_data,
    input  logic [63:0]  in_keep,
    // It is a packet of ours: the checksums are made.
    input  logic         in_ours,
    // Its path, port and time stamp are written.
    input  logic         in_stamp,
    input  logic [15:0]  in_path,
    input  logic [15:0]  in_port,
    input  logic [63:0]  in_now,

    output logic         out_valid,
    output logic         out_last,
    output logic [511:0] out_data,
    output logic [63:0]  out_keep
);
    // Clock 1: as it came, and which beat it is.
    logic         starts, starts1, valid1, first1, second1, last1, ours1, stamp1;
    logic [511:0] data1;
    logic [63:0]  keep1, now1;
    logic [15:0]  path1, port1;
    always_ff @(posedge clk) begin
        valid1 <= in_valid && !reset;
        if (in_valid) begin
            first1 <= starts;
            second1 <= starts1;
            last1 <= in_last;
            data1 <= in_data;
            keep1 <= in_keep;
            if (starts) begin
                ours1 <= in_ours;
                stamp1 <= in_stamp;
                path1 <= in_path;
                port1 <= in_port;
                now1 <= in_now;
            end
            starts <= in_last;
            starts1 <= starts && !in_last;
        end
        if (reset) begin
            starts <= 1'b1;
            starts1 <= 1'b0;
        end
    end

    // Where path and stamp are, by the opcode. The layout is that of the frame's first beat throughout.
    logic [7:0] opcode, opcode_held;
    logic       known, bad_syndrome;
    logic [4:0] standard_len;
    logic [6:0] headers_len;
    logic [5:0] stamp_at;
    logic       send, write, response, request, ack, nack, cnp, missing, rd;
    logic       notice, notice_reply, probe, probe_reply, echo, pull, is_first, is_last, has_immediate, trimmed;
    assign opcode = first1 ? data1[8*42+:8] : opcode_held;
    always_ff @(posedge clk) if (valid1) opcode_held <= opcode;
    laps_layout layout (
        .opcode,
        .syndrome(8'h1f),
        .known,
        .bad_syndrome,
        .standard_len,
        .headers_len,
        .stamp_at,
        .is_send(send),
        .is_write(write),
        .is_read_response(response),
        .is_read_request(request),
        .is_ack(ack),
        .is_nack(nack),
        .is_cnp(cnp),
        .is_missing(missing),
        .is_rd(rd),
        .is_notice(notice),
        .is_notice_reply(notice_reply),
        .is_probe(probe),
        .is_probe_reply(probe_reply),
        .is_edge_echo(echo),
        .is_pull(pull),
        .is_first,
        .is_last,
        .has_immediate,
        .is_trimmed(trimmed)
    );
    // What is written over: of bytes 54 on, the first at the top, where the extension's path and stamp begin.
    localparam int unsigned OVER = 48;
    logic [OVER*8-1:0] over, over_mask;
    always_comb begin
        // As if there was nothing between BTH and extension, then moved by whole words.
        over = '0;
        over_mask = '0;
        over[OVER*8-1-8*2-:16] = path1;
        over_mask[OVER*8-1-8*2-:16] = '1;
        case (stamp_at)
            6'd8: begin
                over[OVER*8-1-8*8-:64] = now1;
                over_mask[OVER*8-1-8*8-:64] = '1;
            end
            6'd12: begin
                over[OVER*8-1-8*12-:64] = now1;
                over_mask[OVER*8-1-8*12-:64] = '1;
            end
            6'd20: begin
                over[OVER*8-1-8*20-:64] = now1;
                over_mask[OVER*8-1-8*20-:64] = '1;
            end
            default: ;
        endcase
        case (standard_len)
            5'd4: {over, over_mask} = {over >> 32, over_mask >> 32};
            5'd16: {over, over_mask} = {over >> 128, over_mask >> 128};
            5'd20: {over, over_mask} = {over >> 160, over_mask >> 160};
            default: ;
        endcase
    end

    // Clock 2: written; how much of the packet is yet to come, this beat included.
    logic         valid2, first2, last2, ours2;
    logic [511:0] data2;
    logic [63:0]  keep2;
    logic [16:0]  left2;
    logic         old_ones;
    assign old_ones = ours1 && stamp1;
    always_ff @(posedge clk) begin
        valid2 <= valid1 && !reset;
        first2 <= first1;
        last2 <= last1;
        ours2 <= ours1;
        keep2 <= keep1;
        if (valid1) begin
            data2 <= data1;
            if (ours1 && first1) begin
                data2[8*24+:16] <= '0;
                data2[8*40+:16] <= '0;
            end
            if (old_ones && first1) begin
                data2[8*34+:16] <= {port1[7:0], port1[15:8]};
                for (int i = 54; i < 64; i++) begin
                    if (over_mask[OVER*8-1-8*(i-54)]) data2[8*i+:8] <= over[OVER*8-1-8*(i-54)-:8];
                end
            end
            if (old_ones && second1) begin
                for (int i = 0; i < OVER - 10; i++) begin
                    if (over_mask[OVER*8-1-8*(i+10)]) data2[8*i+:8] <= over[OVER*8-1-8*(i+10)-:8];
                end
            end
            if (first1) left2 <= {1'b0, data1[8*16+:8], data1[8*17+:8]} + 17'd14;
            else left2 <= left2 > 17'd64 ? left2 - 17'd64 : '0;
        end
    end

    // Clock 3: where in the beat the ICRC begins; the IPv4 checksum.
    logic         valid3, first3, last3, ours3, covers3;
    logic [511:0] data3;
    logic [63:0]  keep3;
    logic [16:0]  left3;
    logic [6:0]   end3;
    logic [17:0]  rest2;
    logic [19:0]  ip_sum2, ip_sum3;
    assign rest2 = {1'b0, left2} - 18'd4;
    always_comb begin
        ip_sum2 = '0;
        for (int i = 0; i < 10; i++) ip_sum2 = ip_sum2 + {4'b0, data2[8*(14+2*i)+:8], data2[8*(15+2*i)+:8]};
    end
    always_ff @(posedge clk) begin
        valid3 <= valid2 && !reset;
        first3 <= first2;
        last3 <= last2;
        ours3 <= ours2;
        data3 <= data2;
        keep3 <= keep2;
        left3 <= left2;
        end3 <= rest2[17] ? '0 : rest2[16:6] != '0 ? 7'd64 : {1'b0, rest2[5:0]};
        covers3 <= !rest2[17] && rest2[16:0] != '0;
        ip_sum3 <= ip_sum2;
    end

    // Clock 4: what is covered.
    logic         valid4, first4, last4, ours4, covers4, ends4;
    logic [511:0] data4, crc4;
    logic [63:0]  keep4;
    logic [16:0]  left4;
    logic [5:0]   zeroes4;
    logic [16:0]  ip_fold3;
    logic [15:0]  ip_checksum3;
    assign ip_fold3 = {13'b0, ip_sum3[19:16]} + {1'b0, ip_sum3[15:0]};
    assign ip_checksum3 = ~(ip_fold3[15:0] + {15'b0, ip_fold3[16]});
    always_ff @(posedge clk) begin
        valid4 <= valid3 && !reset;
        first4 <= first3;
        last4 <= last3;
        ours4 <= ours3;
        covers4 <= covers3;
        ends4 <= covers3 && left3 <= 17'd68;
        zeroes4 <= 6'(7'd64 - end3);
        data4 <= data3;
        if (ours3 && first3) data4[8*24+:16] <= {ip_checksum3[7:0], ip_checksum3[15:8]};
        keep4 <= keep3;
        left4 <= left3;
        for (int i = 0; i < 64; i++) crc4[8*i+:8] <= 7'(i) < end3 ? data3[8*i+:8] : '0;
        if (first3) begin
            crc4[8*14-1:0] <= '0;
            crc4[8*15+:8] <= '1;
            crc4[8*22+:8] <= '1;
            crc4[8*24+:16] <= '1;
            crc4[8*40+:16] <= '1;
            crc4[8*46+:8] <= '1;
        end
    end

    // Clocks 5 to 7 the CRC, 8 to 13 what the rest of the beat has added, 14 held until the frame's next one has it.
    logic [31:0] crc7, icrc13, icrc14;
    logic [5:0]  zeroes7;
    logic        ends13;
    laps_icrc crc (.clk, .in_valid(valid4 && covers4), .in_first(first4), .in_data(crc4), .state(crc7));
    laps_delay #(.WIDTH(6), .CLOCKS(3)) zeroes (.clk, .d(zeroes4), .q(zeroes7));
    laps_icrc_unwind unwind (.clk, .state(crc7), .zeroes(zeroes7), .icrc(icrc13));
    laps_delay #(.WIDTH(1), .CLOCKS(9)) ends (.clk, .d(valid4 && ends4), .q(ends13));
    logic         valid14, last14, ours14;
    logic [511:0] data14;
    logic [63:0]  keep14;
    logic [16:0]  left14;
    logic [9:0]   valids;
    laps_delay #(.WIDTH(512 + 64 + 17 + 2), .CLOCKS(10)) beats (
        .clk,
        .d({data4, keep4, left4, last4, ours4}),
        .q({data14, keep14, left14, last14, ours14})
    );
    assign valid14 = valids[9];
    always_ff @(posedge clk) begin
        valids <= reset ? '0 : {valids[8:0], valid4};
        if (ends13) icrc14 <= icrc13;
    end

    // Clock 15: the ICRC, which may lie in two beats. `left14` counts from the beat's first byte to behind it.
    always_ff @(posedge clk) begin
        out_valid <= valid14 && !reset;
        out_last <= last14;
        out_keep <= keep14;
        out_data <= data14;
        for (int i = 0; i < 64; i++) begin
            for (int b = 0; b < 4; b++) begin
                if (ours14 && left14 == 17'(i + 4 - b)) out_data[8*i+:8] <= icrc14[8*b+:8];
            end
        end
    end
endmodule
