// Decides whether an Ethernet frame is a packet of ours, as `Packet::parse_ethernet` of the crate `wire` decides, and tells its
// fields. Every length, checksum and field is checked, the ICRC and a UDP checksum too. What is refused is not ours: VLAN tags,
// IPv6, source routes and protected packets among it.
//
// A frame is a sequence of beats of 64 bytes, its first byte in bits 7-0. `in_keep` counts in the last beat only; its ones are from
// the lowest bit on. Beats of a frame may have any clocks between them.
//
// Latency: 10 clocks from a frame's last beat to `out_valid`, in order, refused ones too.
// Initiation interval: 1 beat, of one frame or another; nothing stalls.
// Hazards: none. After `reset` the next beat is a frame's first.
module laps_parser (
    input  logic         clk,
    input  logic         reset,

    input  logic         in_valid,
    input  logic         in_last,
    input  logic [511:0] in_data,
    input  logic [63:0]  in_keep,

    output logic         out_valid,
    // What follows holds of accepted packets only.
    output logic         out_accepted,
    // From the first byte on: destination and source address.
    output logic [95:0]  out_ethernet,
    output logic [7:0]   out_tos,
    output logic [7:0]   out_ttl,
    output logic [63:0]  out_addresses,
    output logic [15:0]  out_source_port,
    output logic [7:0]   out_opcode,
    output logic [23:0]  out_destination_qp,
    output logic         out_ack_request,
    output logic [23:0]  out_psn,
    // RETH of a WRITE or READ request; of an Acknowledge the first 4 bytes are the AETH.
    output logic [127:0] out_standard,
    output logic [31:0]  out_immediate,
    output logic [15:0]  out_path,
    output logic [7:0]   out_flags,
    output logic [23:0]  out_source_qp,
    // The extension behind its common part, first byte at the top; what the packet has less is arbitrary. Where bit 5 of the flags is
    // set, the pull target is behind the rest of it.
    output logic [255:0] out_extension,
    output logic [15:0]  out_payload_len
);
    // Clock 1: where in its frame the beat is.
    logic         starts, starts1;
    logic         valid1, first1, second1, last1;
    logic [511:0] data1, ordered1;
    logic [6:0]   count, count1;
    always_comb begin
        count = 7'd64;
        if (in_last) begin
            for (int i = 0; i < 64; i++) if (in_keep[i]) count = 7'(i + 1);
        end
        for (int i = 0; i < 64; i++) ordered1[511-8*i-:8] = data1[8*i+:8];
    end
    always_ff @(posedge clk) begin
        valid1 <= in_valid && !reset;
        if (in_valid) begin
            first1 <= starts;
            second1 <= starts1;
            last1 <= in_last;
            data1 <= in_data;
            count1 <= count;
            starts <= in_last;
            starts1 <= starts && !in_last;
        end
        if (reset) begin
            starts <= 1'b1;
            starts1 <= 1'b0;
        end
    end

    // Clock 2: how much of the packet is yet to come, this beat included; the headers so far, first byte at the top.
    logic         valid2, first2, last2;
    logic [511:0] data2;
    logic [6:0]   count2;
    logic [16:0]  left2;
    logic [1:0]   pad2;
    logic [1023:0] header2;
    always_ff @(posedge clk) begin
        valid2 <= valid1 && !reset;
        first2 <= first1;
        last2 <= last1;
        data2 <= data1;
        count2 <= count1;
        if (valid1) begin
            if (first1) begin
                left2 <= {1'b0, ordered1[511-8*16-:16]} + 17'd14;
                pad2 <= ordered1[511-8*43-2-:2];
                header2[1023-:512] <= ordered1;
            end else left2 <= left2 > 17'd64 ? left2 - 17'd64 : '0;
            if (second1) header2[511:0] <= ordered1;
        end
    end

    // Clock 3: where in the beat the packet, what the ICRC covers and the padding end, and the padding begins; 64 at most.
    function automatic logic [6:0] clip(input logic [16:0] bytes, input logic [2:0] but);
        logic [17:0] rest;
        rest = {1'b0, bytes} - {15'b0, but};
        clip = rest[17] ? '0 : rest[16:6] != '0 ? 7'd64 : {1'b0, rest[5:0]};
    endfunction
    logic         valid3, first3, last3, ended3, cut3;
    logic [511:0] data3;
    logic [6:0]   end3, pad_end3, pad_start3;
    always_ff @(posedge clk) begin
        valid3 <= valid2 && !reset;
        first3 <= first2;
        last3 <= last2;
        data3 <= data2;
        ended3 <= left2 == '0;
        cut3 <= left2 > {10'b0, count2};
        end3 <= clip(left2, 3'd0);
        pad_end3 <= clip(left2, 3'd4);
        pad_start3 <= clip(left2, 3'd4 + {1'b0, pad2});
    end

    // Clock 4: what is checked, the rest taken as it is to be counted.
    logic         valid4, first4, last4, ended4, cut4;
    logic [511:0] crc4, sum4, pad4;
    logic [5:0]   zeroes4;
    always_ff @(posedge clk) begin
        valid4 <= valid3 && !reset;
        first4 <= first3;
        last4 <= last3;
        ended4 <= ended3;
        cut4 <= cut3;
        zeroes4 <= 6'(7'd64 - end3);
        for (int i = 0; i < 64; i++) begin
            crc4[8*i+:8] <= 7'(i) < end3 ? data3[8*i+:8] : '0;
            sum4[8*i+:8] <= 7'(i) < end3 ? data3[8*i+:8] : '0;
            pad4[8*i+:8] <= 7'(i) < pad_end3 && 7'(i) >= pad_start3 ? data3[8*i+:8] : '0;
        end
        if (first3) begin
            crc4[8*14-1:0] <= '0;
            // Type of service, time to live, both checksums, FECN and BECN.
            crc4[8*15+:8] <= '1;
            crc4[8*22+:8] <= '1;
            crc4[8*24+:16] <= '1;
            crc4[8*40+:16] <= '1;
            crc4[8*46+:8] <= '1;
            // Of IPv4 its addresses count in the UDP checksum, with the protocol and the length once more.
            sum4[8*26-1:0] <= '0;
            sum4[7:0] <= '0;
            sum4[15:8] <= 8'd17;
            sum4[31:16] <= data3[8*38+:16];
        end
    end

    // Clocks 5 to 7: the CRC, the sum of UDP, the padding.
    logic [31:0] crc7;
    laps_icrc crc (.clk, .in_valid(valid4 && !ended4), .in_first(first4), .in_data(crc4), .state(crc7));
    logic [143:0] sums5;
    logic [20:0]  sum, sum6;
    logic [31:0]  sum7;
    logic         valid5, valid6, valid7, first5, first6, last5, last6, last7, ended5, ended6, cut5, cut6, cut7;
    logic         padded5, padded6, padded7;
    logic [5:0]   zeroes5, zeroes6, zeroes7;
    function automatic logic [15:0] word(input logic [15:0] bytes);
        word = {bytes[7:0], bytes[15:8]};
    endfunction
    always_comb begin
        sum = '0;
        for (int i = 0; i < 8; i++) sum = sum + {3'b0, sums5[18*i+:18]};
    end
    always_ff @(posedge clk) begin
        {valid5, valid6, valid7} <= reset ? '0 : {valid4, valid5, valid6};
        {first5, first6} <= {first4, first5};
        {last5, last6, last7} <= {last4, last5, last6};
        {ended5, ended6} <= {ended4, ended5};
        {cut5, cut6, cut7} <= {cut4, cut5, cut6};
        {zeroes5, zeroes6} <= {zeroes4, zeroes5};
        {padded5, padded6} <= {pad4 != '0, padded5};
        for (int i = 0; i < 8; i++) begin
            sums5[18*i+:18] <= {2'b0, word(sum4[64*i+:16])} + {2'b0, word(sum4[64*i+16+:16])}
                + {2'b0, word(sum4[64*i+32+:16])} + {2'b0, word(sum4[64*i+48+:16])};
        end
        sum6 <= sum;
        if (valid6) begin
            sum7 <= (first6 ? '0 : sum7) + {11'b0, sum6};
            padded7 <= padded6 || (!first6 && padded7);
            if (!ended6) zeroes7 <= zeroes6;
        end
    end

    // Clocks 8 and 9: both come to a verdict.
    logic        intact7, intact8, intact9, zero_sum9, padded8, padded9, cut8, cut9, valid8, valid9;
    logic [16:0] folded8;
    laps_icrc_residue residue (.state(crc7), .zeroes(zeroes7), .intact(intact7));
    always_ff @(posedge clk) begin
        {valid8, valid9} <= reset ? '0 : {valid7 && last7, valid8};
        {intact8, intact9} <= {intact7, intact8};
        {padded8, padded9} <= {padded7, padded8};
        {cut8, cut9} <= {cut7, cut8};
        folded8 <= {1'b0, sum7[31:16]} + {1'b0, sum7[15:0]};
        zero_sum9 <= folded8 == 17'h0ffff || folded8 == 17'h1fffe;
    end

    // Beside these, clock 3: the headers of a frame that has ended.
    logic [1023:0] header3;
    always_ff @(posedge clk) if (valid2 && last2) header3 <= header2;
    logic [7:0]  opcode3, bth_flags3;
    logic [15:0] total3;
    assign opcode3 = header3[1023-8*42-:8];
    assign bth_flags3 = header3[1023-8*43-:8];
    assign total3 = header3[1023-8*16-:16];
    logic       known3, bad_syndrome3;
    logic [4:0] standard_len3;
    logic [6:0] headers_len3;
    logic [5:0] stamp_at3;
    logic       send3, write3, response3, request3, ack3, nack3, cnp3, missing3, rd3;
    logic       notice3, notice_reply3, probe3, probe_reply3, echo3, pull3, is_first3, is_last3, immediate3, trimmed3;
    laps_layout layout (
        .opcode(opcode3),
        .syndrome(header3[1023-8*54-:8]),
        .known(known3),
        .bad_syndrome(bad_syndrome3),
        .standard_len(standard_len3),
        .headers_len(headers_len3),
        .stamp_at(stamp_at3),
        .is_send(send3),
        .is_write(write3),
        .is_read_response(response3),
        .is_read_request(request3),
        .is_ack(ack3),
        .is_nack(nack3),
        .is_cnp(cnp3),
        .is_missing(missing3),
        .is_rd(rd3),
        .is_notice(notice3),
        .is_notice_reply(notice_reply3),
        .is_probe(probe3),
        .is_probe_reply(probe_reply3),
        .is_edge_echo(echo3),
        .is_pull(pull3),
        .is_first(is_first3),
        .is_last(is_last3),
        .has_immediate(immediate3),
        .is_trimmed(trimmed3)
    );

    // Clock 4: the extension in its place, and checks of what is before it.
    localparam int unsigned KINDS = 20;
    logic [KINDS-1:0] kinds4;
    logic         send4, write4, response4, request4, ack4, nack4, cnp4, missing4, rd4;
    logic         notice4, notice_reply4, probe4, probe_reply4, echo4, pull4, is_first4, is_last4, immediate4, trimmed4;
    logic         bad_syndrome4;
    assign {send4, write4, response4, request4, ack4, nack4, cnp4, missing4, rd4, notice4, notice_reply4, probe4, probe_reply4,
            echo4, pull4, is_first4, is_last4, immediate4, trimmed4, bad_syndrome4} = kinds4;
    logic [319:0] extension3, extension4;
    logic [127:0] standard4;
    logic [31:0]  immdt4;
    logic [248:0] outer4;
    logic [15:0]  rest4, udp_total4;
    logic [1:0]   pad4h;
    logic [19:0]  ip_sum4;
    logic [9:0]   bad4;
    logic [23:0]  psn4;
    logic         udp_checked4;
    logic [19:0]  ip_sum3;
    logic [17:0]  rest3;
    always_comb begin
        case (standard_len3)
            5'd4: extension3 = header3[1023-8*58-:320];
            5'd16: extension3 = header3[1023-8*70-:320];
            5'd20: extension3 = header3[1023-8*74-:320];
            default: extension3 = header3[1023-8*54-:320];
        endcase
        ip_sum3 = '0;
        for (int i = 0; i < 10; i++) ip_sum3 = ip_sum3 + {4'b0, header3[1023-8*14-16*i-:16]};
        // What follows the headers, up to the ICRC. A pull target still counts.
        rest3 = {2'b0, total3} - 18'd32 - {11'b0, headers_len3};
    end
    always_ff @(posedge clk) begin
        kinds4 <= {send3, write3, response3, request3, ack3, nack3, cnp3, missing3, rd3, notice3, notice_reply3, probe3,
                   probe_reply3, echo3, pull3, is_first3, is_last3, immediate3, trimmed3, bad_syndrome3};
        extension4 <= extension3;
        standard4 <= header3[1023-8*54-:128];
        immdt4 <= write3 ? header3[1023-8*70-:32] : header3[1023-8*54-:32];
        // Ethernet without its type, type of service, time to live, addresses, source port, opcode, queue pair, ack request, PSN.
        outer4 <= {header3[1023-:96], header3[1023-8*15-:8], header3[1023-8*22-:8], header3[1023-8*26-:80], opcode3,
                   header3[1023-8*47-:24], header3[1023-8*50], header3[1023-8*51-:24]};
        psn4 <= header3[1023-8*51-:24];
        pad4h <= bth_flags3[5:4];
        rest4 <= rest3[15:0];
        udp_total4 <= total3 - 16'd20 - header3[1023-8*38-:16];
        udp_checked4 <= header3[1023-8*40-:16] != '0;
        ip_sum4 <= ip_sum3;
        bad4[0] <= header3[1023-8*12-:16] != 16'h0800;
        bad4[1] <= header3[1023-8*14-:8] != 8'h45;
        // Any bit but Don't Fragment.
        bad4[2] <= {header3[1023-8*20-:1], header3[1023-8*20-2-:14]} != '0;
        bad4[3] <= header3[1023-8*23-:8] != 8'd17;
        bad4[4] <= header3[1023-8*36-:16] != 16'd4791;
        bad4[5] <= bth_flags3[3:0] != '0 || !known3;
        bad4[6] <= header3[1023-8*44-:16] != 16'hffff;
        bad4[7] <= rest3[17:16] != '0 || total3 < 16'd44;
        bad4[8] <= total3[1:0] != 2'b00;
        bad4[9] <= bad_syndrome3;
    end

    // Clock 5: checks of lengths, and of what no other field decides.
    logic [23:0]  psn_ahead;
    logic [15:0]  payload4, payload5;
    logic         carries4, target4, credit4;
    logic [2:0]   beside4;
    logic [31:0]  offset4, offset5, dma5;
    logic [64:0]  first_byte5;
    logic [16:0]  ip_fold5;
    logic         write5, is_first5, is_last5, is_rd5, transfer5, single5, udp_checked5;
    logic [15:0]  says5;
    logic [7:0]   flags4, allowed4;
    logic         bad5, extension_bad4;
    assign carries4 = send4 || write4 || response4 || rd4;
    // Of data, whether there is a pull target; the highest bit of that, or of the number that a Pull or PullRequest has.
    assign target4 = flags4[5] && (send4 || write4 || response4 || request4);
    assign credit4 = pull4 ? extension4[319-8*8] : write4 && immediate4 ? extension4[319-8*32] : extension4[319-8*28];
    // Pull target and padding.
    assign beside4 = {target4, pad4h};
    assign payload4 = rest4 - {13'b0, beside4};
    assign offset4 = rd4 ? extension4[319-8*13-:32] : extension4[319-8*12-:32];
    assign flags4 = extension4[319-8*4-:8];
    assign psn_ahead = extension4[319-8*9-:24] - psn4;
    always_comb begin
        allowed4 = '0;
        if (send4 || write4) allowed4 = is_last4 ? 8'h21 : 8'h23;
        if (response4 || request4) allowed4 = 8'h21;
        if (rd4) allowed4 = 8'h01;
        if (ack4) allowed4 = 8'h04;
        if (trimmed4 || notice_reply4) allowed4 = 8'h08;
        if (missing4) allowed4 = 8'h10;
        extension_bad4 = extension4[319-:16] != 16'h7002;
        // The last packet has the flag if and only if it has an immediate.
        if ((((send4 || write4) && is_last4 ? flags4 ^ {6'b0, immediate4, 1'b0} : flags4) & ~allowed4) != '0) extension_bad4 = 1'b1;
        if ((ack4 || nack4) && standard4[119:96] != '0) extension_bad4 = 1'b1;
        // How far back an acknowledgement looks is 63 at most.
        if (ack4 && extension4[319-8*8-:2] != '0) extension_bad4 = 1'b1;
        if (nack4 && extension4[319-8*8-:8] != '0) extension_bad4 = 1'b1;
        if (rd4 && {standard4[127:96], extension4[319-8*8-1-:7]} != '0) extension_bad4 = 1'b1;
        if ((cnp4 || probe4 || probe_reply4 || notice_reply4 || echo4 || pull4) && psn4 != '0) extension_bad4 = 1'b1;
        if (missing4 && !extension4[319-8*16+1]) extension_bad4 = 1'b1;
        if ((target4 || pull4) && !credit4) extension_bad4 = 1'b1;
        if (notice4 && (extension4[319-8*8-:8] != '0 || psn_ahead[23])) extension_bad4 = 1'b1;
    end
    always_ff @(posedge clk) begin
        bad5 <= bad4 != '0 || udp_total4 != '0 || extension_bad4 || (!carries4 && rest4 != {13'b0, target4, 2'b0})
            || rest4 < {13'b0, beside4};
        ip_fold5 <= {13'b0, ip_sum4[19:16]} + {1'b0, ip_sum4[15:0]};
        udp_checked5 <= udp_checked4;
        payload5 <= payload4;
        offset5 <= offset4;
        transfer5 <= send4 || write4 || response4;
        write5 <= write4;
        is_first5 <= is_first4;
        is_last5 <= is_last4;
        is_rd5 <= rd4;
        single5 <= !extension4[319-8*8];
        says5 <= extension4[319-8*11-:16];
        dma5 <= standard4[31:0];
        first_byte5 <= {1'b0, standard4[127:64]} - {33'b0, offset4};
    end

    // Clocks 6 and 7: where the packet lies in its message.
    logic [32:0] end6;
    logic [31:0] dma6;
    logic        write6, last6h, bad6, bad7, bad8, bad9, empty6, udp_checked6, udp_checked7, udp_checked8, udp_checked9;
    logic        address_bad6;
    logic [64:0] last_byte6;
    always_ff @(posedge clk) begin
        end6 <= {1'b0, offset5} + {17'b0, payload5};
        dma6 <= dma5;
        write6 <= write5;
        last6h <= is_last5;
        empty6 <= payload5 == '0;
        address_bad6 <= first_byte5[64];
        last_byte6 <= {1'b0, first_byte5[63:0]} + {33'b0, dma5};
        bad6 <= bad5 || ip_fold5 != 17'h0ffff
            || (transfer5 && (offset5 == '0) != is_first5)
            || (is_rd5 && (says5 != payload5 || payload5 == '0 || (single5 && offset5 != '0)));
        bad7 <= bad6 || end6 > 33'h100000000
            || (write6 && (address_bad6 || last_byte6[64]
                || (empty6 ? !last6h || end6 != '0 || dma6 != '0
                    : last6h ? end6 != {1'b0, dma6} + 33'd1 : end6 >= {1'b0, dma6} + 33'd1)));
        {bad8, bad9} <= {bad7, bad8};
        {udp_checked6, udp_checked7, udp_checked8, udp_checked9} <= {udp_checked5, udp_checked6, udp_checked7, udp_checked8};
    end

    // Clock 10.
    always_ff @(posedge clk) begin
        out_valid <= valid9 && !reset;
        out_accepted <= intact9 && !padded9 && !cut9 && !bad9 && !(udp_checked9 && !zero_sum9);
    end
    laps_delay #(.WIDTH(96 + 8 + 8 + 64 + 16 + 8 + 24 + 1 + 24 + 128 + 32 + 16 + 8 + 24 + 256), .CLOCKS(6)) fields (
        .clk,
        .d({outer4, standard4, immdt4, extension4[319-16-:16], flags4, extension4[319-40-:24], extension4[255:0]}),
        .q({out_ethernet, out_tos, out_ttl, out_addresses, out_source_port, out_opcode, out_destination_qp, out_ack_request,
            out_psn, out_standard, out_immediate, out_path, out_flags, out_source_qp, out_extension})
    );
    laps_delay #(.WIDTH(16), .CLOCKS(5)) payloads (.clk, .d(payload5), .q(out_payload_len));
endmodule
