// Calls of the WebAssembly module (crates/browser). Shared by the page's worker and by the tests under Node.

/** A module that is ready to answer. It sees neither clock nor files; it tells `progress`, from 0 to 1, while it runs. */
export async function open(module, progress = () => {}) {
  const { exports } = await WebAssembly.instantiate(module, { page: { progress } });
  const ask = (what, request) => {
    const bytes = new TextEncoder().encode(request === undefined ? "" : JSON.stringify(request));
    const at = exports.pathweave_request(bytes.length);
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    try {
      exports["pathweave_" + what]();
    } catch (trap) {
      exports.pathweave_panicked();
      throw new Error(answer(exports) || String(trap));
    }
    const said = JSON.parse(answer(exports));
    if (said.error !== undefined) throw new Error(said.error);
    return said;
  };
  return {
    catalogue: () => ask("catalogue"),
    check: (request) => ask("check", request),
    run: (request) => ask("run", request),
    instant: (request) => ask("instant", request),
    /** A copy of a column of the last run. */
    column: (number) => new Float64Array(exports.memory.buffer, exports.pathweave_column_at(number), exports.pathweave_column_len(number)).slice(),
  };
}

function answer(exports) {
  const bytes = new Uint8Array(exports.memory.buffer, exports.pathweave_answer_at(), exports.pathweave_answer_len());
  return new TextDecoder().decode(bytes);
}
