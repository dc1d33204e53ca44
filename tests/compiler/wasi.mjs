// Runs a WASI program with this process's standard input and output: node wasi.mjs <program>. Node 18 wants
// --experimental-wasi-unstable-preview1 as well.
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1' });
const program = new WebAssembly.Module(readFileSync(process.argv[2]));
process.exitCode = wasi.start(new WebAssembly.Instance(program, { wasi_snapshot_preview1: wasi.wasiImport }));
