// The time: picoseconds of 64 bits, with 16 more below the point, which a host steers by the step.
//
// Latency: what is set counts from the next clock on.
module laps_clock (
    input  logic        clk,
    input  logic        reset,
    // Picoseconds a clock times 65536.
    input  logic [31:0] step,
    input  logic        set,
    input  logic [63:0] set_to,
    output logic [63:0] now
);
    logic [79:0] time_now;
    assign now = time_now[79:16];
    always_ff @(posedge clk) begin
        time_now <= set ? {set_to, 16'b0} : time_now + {48'b0, step};
        if (reset) time_now <= '0;
    end
endmodule
