// What the opcode says of a packet (docs/wire.md): where its parts lie. Combinational.
module laps_layout (
    input  logic [7:0] opcode,
    // The AETH syndrome of an Acknowledge; of other opcodes it does not matter.
    input  logic [7:0] syndrome,

    output logic       known,
    // An Acknowledge whose syndrome is not one of ours.
    output logic       bad_syndrome,
    output logic [4:0] standard_len,
    // BTH to payload, without a pull target: that is 4 bytes more, where flag bit 5 of the extension says so.
    output logic [6:0] headers_len,
    // Where `sent at` lies in the extension; 0 where there is none.
    output logic [5:0] stamp_at,
    // One of these.
    output logic       is_send,
    output logic       is_write,
    output logic       is_read_response,
    output logic       is_read_request,
    output logic       is_ack,
    output logic       is_nack,
    output logic       is_cnp,
    output logic       is_missing,
    output logic       is_rd,
    output logic       is_notice,
    output logic       is_notice_reply,
    output logic       is_probe,
    output logic       is_probe_reply,
    output logic       is_edge_echo,
    // Pull or PullRequest.
    output logic       is_pull,
    // Of SEND, WRITE and READ response: First or Only; Last or Only; with an ImmDt.
    output logic       is_first,
    output logic       is_last,
    output logic       has_immediate,
    // A refusal of a trimmed packet.
    output logic       is_trimmed
);
    logic       acknowledge, positive;
    logic [5:0] extension_len;
    always_comb begin
        {is_send, is_write, is_read_response, is_read_request, acknowledge, is_cnp, is_missing, is_rd} = '0;
        {is_notice, is_notice_reply, is_probe, is_probe_reply, is_edge_echo, is_pull} = '0;
        {is_first, is_last, has_immediate} = '0;
        known = opcode[7:6] == 2'b11;
        case (opcode[5:0])
            6'h00: {is_send, is_first} = '1;
            6'h01: is_send = 1'b1;
            6'h02: {is_send, is_last} = '1;
            6'h03: {is_send, is_last, has_immediate} = '1;
            6'h04: {is_send, is_first, is_last} = '1;
            6'h05: {is_send, is_first, is_last, has_immediate} = '1;
            6'h06: {is_write, is_first} = '1;
            6'h07: is_write = 1'b1;
            6'h08: {is_write, is_last} = '1;
            6'h09: {is_write, is_last, has_immediate} = '1;
            6'h0a: {is_write, is_first, is_last} = '1;
            6'h0b: {is_write, is_first, is_last, has_immediate} = '1;
            6'h0c: is_read_request = 1'b1;
            6'h0d: {is_read_response, is_first} = '1;
            6'h0e: is_read_response = 1'b1;
            6'h0f: {is_read_response, is_last} = '1;
            6'h10: {is_read_response, is_first, is_last} = '1;
            6'h11: acknowledge = 1'b1;
            6'h12, 6'h13: is_pull = 1'b1;
            6'h15: is_notice = 1'b1;
            6'h16: is_notice_reply = 1'b1;
            6'h17: is_missing = 1'b1;
            6'h18: is_cnp = 1'b1;
            6'h19: is_probe = 1'b1;
            6'h1a: is_probe_reply = 1'b1;
            6'h1b: is_rd = 1'b1;
            6'h1c: is_edge_echo = 1'b1;
            default: known = 1'b0;
        endcase

        is_trimmed = acknowledge && (syndrome == 8'h71 || syndrome == 8'h72);
        positive = syndrome == 8'h1f;
        is_ack = acknowledge && positive;
        is_nack = acknowledge && !positive;
        case (syndrome)
            8'h1f, 8'h20, 8'h60, 8'h61, 8'h62, 8'h70, 8'h71, 8'h72: bad_syndrome = 1'b0;
            default: bad_syndrome = acknowledge;
        endcase

        standard_len = '0;
        if (is_write) standard_len = has_immediate ? 5'd20 : 5'd16;
        else if (is_read_request) standard_len = 5'd16;
        else if (acknowledge || is_rd || has_immediate) standard_len = 5'd4;

        stamp_at = '0;
        extension_len = 6'd8;
        if (is_send || is_write || is_read_response || is_read_request) begin
            stamp_at = 6'd20;
            extension_len = is_write && has_immediate ? 6'd32 : 6'd28;
        end else if (is_ack) extension_len = 6'd40;
        else if (is_nack) extension_len = 6'd20;
        else if (is_missing) extension_len = 6'd16;
        else if (is_rd) extension_len = 6'd17;
        else if (is_notice) begin
            stamp_at = 6'd12;
            extension_len = 6'd20;
        end else if (is_probe) begin
            stamp_at = 6'd8;
            extension_len = 6'd16;
        end else if (is_probe_reply || is_notice_reply) extension_len = 6'd24;
        else if (is_edge_echo) extension_len = 6'd16;
        else if (is_pull) extension_len = 6'd12;
        headers_len = 7'd12 + {2'b0, standard_len} + {1'b0, extension_len};
    end
endmodule
