// Starts the program: compiles main.ts, which the build bundles into one script, with V8's code cache, and runs it. The
// build replaces STOWAGE_PROGRAM by the name of the script, which contains a hash of its content.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { compileScript } from './base/compiled-script.ts'

declare const STOWAGE_PROGRAM: string

const { href: url } = new URL(`program/${STOWAGE_PROGRAM}`, import.meta.url)
const { script } = compileScript({ file: fileURLToPath(url), url })
const run: (require: NodeJS.Require, programUrl: string) => void = script.runInThisContext()
run(createRequire(url), url)
