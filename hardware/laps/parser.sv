// Reads frames of pathweave's wire format (docs/wire.md) from an AXI stream, and says of each whether it is one, as
// `Packet::parse_ethernet` of the crate `wire` does: lengths, checksums, ICRC, padding and every field that is checked.
//
// Byte 0 of a beat is its lowest; `keep` has ones from the lowest bit on, all of them but in the last beat. All headers lie in the
// first two beats.
//
// Latency: 6 clocks from the last beat of a frame to `out_valid`. Initiation interval: 1 beat, also from frame to frame.
// Hazards: none; it never stalls, so there is no `ready`.
module laps_parser (
    input  logic         clk,
    input  logic         reset,
    input  logic         in_valid,
    input  logic [511:0] in_data,
    input  logic [63:0]  in_keep,
    input  logic         in_last,

    output logic         out_valid,
    output logic         out_good,
    // The opcode without its range; of no meaning unless good.
    output logic [5:0]   out_opcode,
    // A negative acknowledgement.
    output logic         out_negative,
    output logic [23:0]  out_destination_qp,
    output logic [23:0]  out_source_qp,
    output logic [23:0]  out_psn,
    output logic [15:0]  out_path,
    // Picoseconds: when the packet was sent; in an answer, when that which it answers was.
    output logic [63:0]  out_sent_at,
    // Of an answer: when what it answers was received.
    output logic [63:0]  out_received_at
);
    localparam logic [5:0] READ_REQUEST = 6'h0c, ACKNOWLEDGE = 6'h11, NOTICE = 6'h15, NOTICE_REPLY = 6'h16,
        MISSING = 6'h17, CNP = 6'h18, PROBE = 6'h19, PROBE_REPLY = 6'h1a, RD = 6'h1b, EDGE_ECHO = 6'h1c;

    // Clock 1: the beat, its place, and where its packet ends by the length in the IPv4 header.
    logic         valid1, last1, first1, next_first;
    logic [511:0] data1;
    logic [63:0]  keep1;
    logic [10:0]  beat1;
    logic [16:0]  end1;
    always_ff @(posedge clk) begin
        valid1 <= in_valid && !reset;
        last1 <= in_last;
        data1 <= in_data;
        keep1 <= in_keep;
        first1 <= next_first;
        if (reset) next_first <= 1'b1;
        else if (in_valid) begin
            next_first <= in_last;
            // No packet ends beyond beat 1,024, so it stays there.
            beat1 <= next_first ? '0 : beat1 == '1 ? beat1 : beat1 + 1'b1;
            if (next_first) end1 <= 17'd14 + {1'b0, in_data[16*8+:8], in_data[17*8+:8]};
        end
    end

    // Clock 2: bytes of the packet and no others; those that switches may change are ones in the CRC.
    logic         valid2, last2, first2, ends2, some2;
    logic [511:0] checked2, summed2, first_half, second_half;
    logic [5:0]   zeros2;
    logic [10:0]  beat2;
    logic [6:0]   kept2;
    logic [16:0]  end2;
    logic         padding2;
    // Whether an offset in the frame lies in this beat or before it, as ones below it.
    function automatic logic [63:0] below(input logic [16:0] offset, input logic [10:0] beat);
        logic [17:0] left;
        left = {1'b0, offset} - {1'b0, beat, 6'b0};
        below = left[17] ? '0 : left[16:6] != '0 ? '1 : ~(64'hffff_ffff_ffff_ffff << left[5:0]);
    endfunction
    logic [63:0]  inside1, before_crc1, before_padding1, padding1;
    logic [1:0]   pad_of_first, pad1;
    assign pad_of_first = first1 ? data1[43*8+4+:2] : pad1;
    assign inside1 = below(end1, beat1);
    assign before_crc1 = below(end1 - 17'd4, beat1);
    assign before_padding1 = below(end1 - 17'd4 - {15'b0, pad_of_first}, beat1);
    assign padding1 = before_crc1 & ~before_padding1;
    logic [511:0] inside_data1;
    logic [6:0]   kept1;
    logic         padding_is_set1;
    always_comb begin
        kept1 = '0;
        padding_is_set1 = 1'b0;
        for (int i = 0; i < 64; i++) begin
            inside_data1[8*i+:8] = inside1[i] ? data1[8*i+:8] : 8'h0;
            kept1 = kept1 + {6'b0, keep1[i]};
            padding_is_set1 = padding_is_set1 | (padding1[i] && data1[8*i+:8] != 8'h0);
        end
    end
    always_ff @(posedge clk) begin
        valid2 <= valid1 && !reset;
        last2 <= last1;
        first2 <= first1;
        if (valid1) pad1 <= pad_of_first;
        beat2 <= beat1;
        end2 <= end1;
        kept2 <= kept1;
        padding2 <= padding_is_set1;
        // Eight bytes of ones go before the IPv4 header, the first four of them turned by the CRC's first state.
        checked2 <= inside_data1;
        summed2 <= inside_data1;
        if (first1) begin
            checked2[13*8+7:10*8] <= '1;
            checked2[9*8+7:0] <= '0;
            checked2[15*8+:8] <= '1;
            checked2[22*8+:8] <= '1;
            checked2[24*8+:16] <= '1;
            checked2[40*8+:16] <= '1;
            checked2[46*8+:8] <= '1;
            // UDP and the addresses before it; its length and protocol are added below.
            summed2[26*8-1:0] <= '0;
        end
        // Something of the packet is in this beat, and nothing behind it.
        some2 <= inside1[0];
        ends2 <= inside1[0] && below(end1, beat1 + 1'b1) == '0;
        zeros2 <= 6'd0 - end1[5:0];
        if (valid1 && first1) first_half <= data1;
        if (valid1 && beat1 == 11'd1) second_half <= data1;
    end

    // Clocks 3 and 4: the CRC, and the one's complement sum of UDP.
    logic [31:0] crc_state;
    logic        crc_good;
    logic [5:0]  zeros3, zeros4;
    laps_icrc icrc (
        .clk,
        .in_valid(valid2 && some2),
        .in_first(first2),
        .in_data(checked2),
        .state(crc_state),
        .zeros(zeros4),
        .good(crc_good)
    );
    logic [8*19-1:0] sums, sums3;
    always_comb begin
        for (int g = 0; g < 8; g++) begin
            sums[19*g+:19] = '0;
            for (int w = 0; w < 4; w++) begin
                sums[19*g+:19] = sums[19*g+:19]
                    + {3'b0, summed2[(8*g+2*w)*8+:8], summed2[(8*g+2*w+1)*8+:8]};
            end
        end
    end
    logic [31:0] beat_sum3, sum4;
    always_comb begin
        beat_sum3 = '0;
        for (int g = 0; g < 8; g++) beat_sum3 = beat_sum3 + {13'b0, sums3[19*g+:19]};
    end
    logic        valid3, last3, first3, some3, ends3, padding3, valid4, last4, padding4, ended4;
    logic [6:0]  kept3;
    logic [10:0] beat3;
    logic [16:0] end3, end4;
    logic        long4;
    logic [17:0] length3;
    assign length3 = {1'b0, beat3, 6'b0} + {11'b0, kept3};

    // The header of a frame whose last beat is in clock 3.
    logic [1023:0] header3;
    assign header3 = {second_half, first_half};

    logic crc_ok, sum_ok5;
    always_ff @(posedge clk) begin
        valid3 <= valid2 && !reset;
        last3 <= last2;
        first3 <= first2;
        some3 <= some2;
        ends3 <= ends2;
        padding3 <= padding2;
        kept3 <= kept2;
        beat3 <= beat2;
        end3 <= end2;
        zeros3 <= zeros2;
        sums3 <= sums;

        valid4 <= valid3 && !reset;
        last4 <= last3;
        end4 <= end3;
        zeros4 <= zeros3;
        if (valid3) begin
            // UDP's length and protocol, 17.
            sum4 <= (first3 ? {15'b0, end3} - 32'd34 + 32'd17 : sum4) + beat_sum3;
            padding4 <= (!first3 && padding4) || padding3;
            ended4 <= (!first3 && ended4) || ends3;
            // The frame has all of the packet.
            long4 <= length3 >= {1'b0, end3};
        end
    end

    // Clock 4: the fields. What is behind the BTH moves by 0, 4, 16 or 20 bytes of standard headers.
    logic [7:0] opcode3;
    assign opcode3 = header3[42*8+:8];
    logic is_write3, is_immediate3, is_transfer3, is_ack3;
    logic [5:0] low3;
    assign low3 = opcode3[5:0];
    assign is_transfer3 = low3 <= 6'h0b || (low3 >= 6'h0d && low3 <= 6'h10);
    assign is_write3 = low3 >= 6'h06 && low3 <= 6'h0b;
    assign is_immediate3 = low3 == 6'h03 || low3 == 6'h05 || low3 == 6'h09 || low3 == 6'h0b;
    assign is_ack3 = low3 == ACKNOWLEDGE;
    logic [5:0] standard3;
    assign standard3 = (is_write3 || low3 == READ_REQUEST ? 6'd16 : 6'd0)
        + (is_immediate3 || is_ack3 || low3 == RD ? 6'd4 : 6'd0);
    // Bytes of the extension, byte 0 the highest, so that fields are as they are on the wire.
    logic [319:0] extension3, extension4;
    logic [335:0] bth3, bth4;
    always_comb begin
        for (int i = 0; i < 40; i++) begin
            case (standard3)
                6'd0: extension3[8*(39-i)+:8] = header3[8*(54+i)+:8];
                6'd4: extension3[8*(39-i)+:8] = header3[8*(58+i)+:8];
                6'd16: extension3[8*(39-i)+:8] = header3[8*(70+i)+:8];
                default: extension3[8*(39-i)+:8] = header3[8*(74+i)+:8];
            endcase
        end
    end
    // Ethernet's type to the end of the BTH, and the 16 bytes behind it, likewise.
    always_comb begin
        for (int i = 0; i < 42; i++) bth3[8*(41-i)+:8] = header3[8*(12+i)+:8];
    end
    logic [127:0] standard_bytes3, standard_bytes4;
    always_comb begin
        for (int i = 0; i < 16; i++) standard_bytes3[8*(15-i)+:8] = header3[8*(54+i)+:8];
    end
    // The IPv4 header's sum.
    logic [20:0] ip_sum3, ip_sum4;
    always_comb begin
        ip_sum3 = '0;
        for (int w = 0; w < 10; w++) ip_sum3 = ip_sum3 + {5'b0, header3[8*(14+2*w)+:8], header3[8*(15+2*w)+:8]};
    end
    logic [5:0] low4, standard4;
    logic       is_write4, is_immediate4, is_transfer4, is_ack4;
    always_ff @(posedge clk) begin
        extension4 <= extension3;
        bth4 <= bth3;
        standard_bytes4 <= standard_bytes3;
        ip_sum4 <= ip_sum3;
        low4 <= low3;
        standard4 <= standard3;
        is_write4 <= is_write3;
        is_immediate4 <= is_immediate3;
        is_transfer4 <= is_transfer3;
        is_ack4 <= is_ack3;
    end

    // Clock 5: what is wrong. Names are those of docs/wire.md.
    logic [15:0] ether_type, total, fragment, udp_port, udp_length, udp_checksum, key;
    logic [7:0]  version_words, protocol, opcode, bth_flags, ext_flags, syndrome;
    logic [23:0] psn;
    assign ether_type = bth4[8*40+:16];
    assign version_words = bth4[8*39+:8];
    assign total = bth4[8*36+:16];
    assign fragment = bth4[8*32+:16];
    assign protocol = bth4[8*30+:8];
    assign udp_port = bth4[8*16+:16];
    assign udp_length = bth4[8*14+:16];
    assign udp_checksum = bth4[8*12+:16];
    assign opcode = bth4[8*11+:8];
    assign bth_flags = bth4[8*10+:8];
    assign key = bth4[8*8+:16];
    assign psn = bth4[23:0];
    assign ext_flags = extension4[8*35+:8];
    assign syndrome = standard_bytes4[8*15+:8];

    logic negative, known;
    assign negative = is_ack4 && syndrome != 8'h1f;
    assign known = is_transfer4 || low4 == READ_REQUEST || is_ack4 || (low4 >= NOTICE && low4 <= EDGE_ECHO);
    // Headers behind the UDP header, and what is behind them but for the ICRC.
    logic [6:0]  headers;
    logic [5:0]  extension_length;
    always_comb begin
        case (low4)
            6'h09, 6'h0b: extension_length = 6'd32;
            ACKNOWLEDGE: extension_length = negative ? 6'd20 : 6'd40;
            CNP: extension_length = 6'd8;
            RD: extension_length = 6'd17;
            NOTICE: extension_length = 6'd20;
            NOTICE_REPLY, PROBE_REPLY: extension_length = 6'd24;
            PROBE, MISSING, EDGE_ECHO: extension_length = 6'd16;
            default: extension_length = 6'd28;
        endcase
        headers = 7'd12 + {1'b0, standard4} + {1'b0, extension_length};
    end
    logic [16:0] body, rest;
    logic [17:0] payload;
    assign body = {1'b0, total} - 17'd32;
    assign rest = body - {10'b0, headers};
    assign payload = {rest[16], rest} - {16'b0, bth_flags[5:4]};

    // Fields of the extensions.
    logic [31:0] offset, dma;
    logic [63:0] address, missing;
    assign offset = extension4[8*24+:32];
    assign dma = standard_bytes4[31:0];
    assign address = standard_bytes4[127:64];
    assign missing = extension4[8*24+:64];
    // Position says whether the offset is 0, and whether the packet is the last.
    logic at_start, at_end, is_send, is_response;
    assign is_send = low4 <= 6'h05;
    assign is_response = low4 >= 6'h0d && low4 <= 6'h10;
    assign at_start = low4 == 6'h00 || low4 == 6'h04 || low4 == 6'h05 || low4 == 6'h06 || low4 == 6'h0a || low4 == 6'h0b
        || low4 == 6'h0d || low4 == 6'h10;
    assign at_end = !(low4 == 6'h00 || low4 == 6'h01 || low4 == 6'h06 || low4 == 6'h07 || low4 == 6'h0d || low4 == 6'h0e);
    logic [32:0] reach, whole;
    assign reach = {1'b0, offset} + {16'b0, payload[16:0]};
    assign whole = {1'b0, dma} + 33'd1;
    logic [64:0] begins, stops;
    assign begins = {1'b0, address} - {33'b0, offset};
    assign stops = {1'b0, begins[63:0]} + {33'b0, dma};

    logic outer_ok, lengths_ok, extension_ok, transfer_ok;
    logic [7:0] allowed;
    logic [15:0] eeth_length;
    logic [31:0] eeth_offset;
    logic [32:0] eeth_reach;
    logic [23:0] range;
    assign eeth_length = extension4[8*27+:16];
    assign eeth_offset = extension4[8*23+:32];
    assign eeth_reach = {1'b0, eeth_offset} + {17'b0, eeth_length};
    assign range = extension4[8*28+:24] - psn;
    always_comb begin
        outer_ok = ether_type == 16'h0800 && version_words == 8'h45 && (fragment & 16'hbfff) == '0 && protocol == 8'd17
            && total >= 16'd44 && udp_port == 16'd4791 && {1'b0, udp_length} == {1'b0, total} - 17'd20
            && bth_flags[3:0] == '0 && opcode[7:6] == 2'b11 && known && key == 16'hffff;
        if (is_ack4) begin
            outer_ok = outer_ok && (syndrome == 8'h1f || syndrome == 8'h20 || syndrome == 8'h60 || syndrome == 8'h61
                || syndrome == 8'h62 || syndrome == 8'h70);
        end
        lengths_ok = !body[16] && !rest[16] && body[1:0] == '0 && !payload[17]
            && (is_transfer4 || low4 == RD || rest == '0);

        transfer_ok = at_start == (offset == '0) && !(reach > 33'h1_0000_0000);
        if (is_write4) begin
            if (payload == '0) transfer_ok = transfer_ok && at_end && offset == '0 && dma == '0;
            else if (at_end) transfer_ok = transfer_ok && reach == whole;
            else transfer_ok = transfer_ok && reach < whole;
            transfer_ok = transfer_ok && !begins[64] && !stops[64];
        end
        if (at_end && !is_response) transfer_ok = transfer_ok && ext_flags[1] == is_immediate4;

        case (low4)
            READ_REQUEST, RD: allowed = 8'h01;
            ACKNOWLEDGE: allowed = negative ? 8'h00 : 8'h04;
            NOTICE_REPLY: allowed = 8'h08;
            MISSING: allowed = 8'h10;
            default: allowed = is_response ? 8'h01 : is_transfer4 ? 8'h03 : 8'h00;
        endcase
        extension_ok = extension4[8*39+:8] == 8'h70 && extension4[8*38+:8] == 8'h02 && (ext_flags & ~allowed) == '0;
        case (low4)
            ACKNOWLEDGE: extension_ok = extension_ok && standard_bytes4[8*12+:24] == '0 && extension4[8*31+:8] == '0;
            MISSING: extension_ok = extension_ok && missing[0];
            CNP, PROBE, PROBE_REPLY, EDGE_ECHO, NOTICE_REPLY: extension_ok = extension_ok && psn == '0;
            NOTICE: extension_ok = extension_ok && extension4[8*31+:8] == '0 && !range[23];
            RD: extension_ok = extension_ok && standard_bytes4[8*12+:32] == '0 && extension4[8*31+:7] == '0
                && {2'b0, eeth_length} == payload && eeth_length != '0 && !(eeth_reach > 33'h1_0000_0000)
                && (extension4[8*31+7] || eeth_offset == '0);
            default: extension_ok = extension_ok && (!is_transfer4 || transfer_ok);
        endcase
    end

    // A one's complement sum is right if it is all ones once folded: a multiple of 65,535.
    function automatic logic [16:0] folded(input logic [31:0] sum);
        folded = {1'b0, sum[15:0]} + {1'b0, sum[31:16]};
    endfunction
    logic [16:0] udp_fold4, ip_fold4;
    assign udp_fold4 = folded(sum4);
    assign ip_fold4 = folded({11'b0, ip_sum4});
    logic [5:0]  valid_and_checks5;
    logic [16:0] udp_fold5, ip_fold5;
    logic        udp_unchecked5, negative5, in_two_beats5;
    logic [5:0]  low5;
    logic [319:0] extension5;
    logic [23:0] psn5, destination_qp5;
    always_ff @(posedge clk) begin
        valid_and_checks5 <= {
            valid4 && last4 && !reset,
            outer_ok && long4,
            lengths_ok && !padding4,
            extension_ok,
            crc_good,
            ended4
        };
        udp_fold5 <= udp_fold4;
        ip_fold5 <= ip_fold4;
        udp_unchecked5 <= udp_checksum == '0;
        negative5 <= negative;
        low5 <= low4;
        extension5 <= extension4;
        psn5 <= psn;
        destination_qp5 <= bth4[8*4+:24];
    end

    // Clock 6: the answer.
    logic udp_ok, ip_ok;
    assign udp_ok = udp_unchecked5 || udp_fold5 == 17'hffff || udp_fold5 == 17'h1fffe;
    assign ip_ok = ip_fold5 == 17'hffff || ip_fold5 == 17'h1fffe;
    always_ff @(posedge clk) begin
        out_valid <= valid_and_checks5[5] && !reset;
        out_good <= valid_and_checks5[4:0] == '1 && udp_ok && ip_ok;
        out_opcode <= low5;
        out_negative <= negative5;
        out_destination_qp <= destination_qp5;
        out_source_qp <= extension5[8*32+:24];
        out_psn <= psn5;
        out_path <= extension5[8*36+:16];
        case (low5)
            ACKNOWLEDGE: out_sent_at <= extension5[8*8+:64];
            PROBE, PROBE_REPLY, EDGE_ECHO, NOTICE_REPLY: out_sent_at <= extension5[8*24+:64];
            NOTICE: out_sent_at <= extension5[8*20+:64];
            default: out_sent_at <= extension5[8*12+:64];
        endcase
        out_received_at <= low5 == ACKNOWLEDGE ? extension5[63:0] : extension5[8*16+:64];
    end
endmodule
