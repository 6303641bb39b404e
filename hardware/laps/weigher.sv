// The weight of a delay: 2^24 times 2 to the power of minus (delay - reference) x factor / 2^26, cut as `weight` of the crate
// `hardware` cuts it.
//
// Latency: 7 clocks from `in_destination` to `weight`. Initiation interval: 1.
// Hazards: an operation whose destination's scale is written in the same clock has the old one.
module laps_weigher #(
    parameter int unsigned DESTINATION = 10,
    // 1,024 words of 24 bits in hexadecimal, written by a test of that crate.
    parameter TABLE = "exp2.hex"
) (
    input  logic                   clk,
    input  logic                   scale_write,
    input  logic [DESTINATION-1:0] scale_destination,
    input  logic [17:0]            scale_factor,
    input  logic [23:0]            scale_reference,

    input  logic [DESTINATION-1:0] in_destination,
    // What is down weighs nothing.
    input  logic                   in_up,
    input  logic [23:0]            in_delay,
    output logic [23:0]            weight
);
    logic [41:0] scale;
    laps_ram #(.WIDTH(42), .ADDRESS(DESTINATION)) scales (
        .clk,
        .write(scale_write),
        .write_address(scale_destination),
        .write_data({scale_factor, scale_reference}),
        .read_address(in_destination),
        .read_data(scale)
    );

    (* rom_style = "block", ram_style = "block" *)
    logic [23:0] powers[1024];
    initial $readmemh(TABLE, powers);

    logic        up1, up2, up3, up4;
    logic [23:0] delay1, above2;
    logic [24:0] above1;
    logic [17:0] factor2;
    logic [41:0] product3, product4;
    logic        some5, some6;
    logic [4:0]  shift5, shift6;
    logic [9:0]  fraction5;
    logic [23:0] power6;

    assign above1 = {1'b0, delay1} - {1'b0, scale[23:0]};

    always_ff @(posedge clk) begin
        up1 <= in_up;
        delay1 <= in_delay;

        up2 <= up1;
        above2 <= above1[24] ? '0 : above1[23:0];
        factor2 <= scale[41:24];

        up3 <= up2;
        product3 <= above2 * factor2;

        up4 <= up3;
        product4 <= product3;

        // An exponent of 32 or more leaves no bit of 24.
        some5 <= up4 && product4[41:31] == '0;
        shift5 <= product4[30:26];
        fraction5 <= product4[25:16];

        some6 <= some5;
        shift6 <= shift5;
        power6 <= powers[fraction5];

        weight <= some6 ? power6 >> shift6 : '0;
    end
endmodule
