// Checks that the smoke suite runs on every Node.js release line that package.json and the README support, and that CI
// runs the smoke suite. scripts/smoke.mjs itself takes minutes and downloads Node.js.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const readProjectFile = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

const { engines, scripts } = JSON.parse(readProjectFile('package.json'))
const oldestVersion = /^>=(\d+\.\d+)$/.exec(engines.node)![1]!
const smokeLines = [
  .../const LINES = \[([^\]]*)\]/.exec(readProjectFile('scripts/smoke.mjs'))![1]!.matchAll(/'([\d.]+)'/g),
].map(([, line]) => line!)
const majorOf = (version: string) => Number(version.split('.')[0])

it('SYS-30 the smoke suite starts at the oldest version that package.json and the README support', () => {
  expect(smokeLines[0]).toBe(oldestVersion)
  expect(readProjectFile('README.md')).toContain(`Node.js: ${oldestVersion} or newer`)
  expect(readProjectFile('scripts/bundle-options.mjs')).toContain(`target: 'node${majorOf(oldestVersion)}'`)
})

it('SYS-30 the smoke suite covers every LTS release line up to the newest', () => {
  const majors = smokeLines.map(majorOf)
  const newestMajor = majors.at(-1)!
  const ltsMajors = Array.from({ length: (newestMajor - majors[0]!) / 2 + 1 }, (_, index) => majors[0]! + 2 * index)
  expect(majors).toEqual(ltsMajors)
  expect(newestMajor).toBeGreaterThanOrEqual(majorOf(process.versions.node))
})

it('SYS-30 CI runs the smoke suite on all its release lines', () => {
  expect(readProjectFile('.ci/run').split('\n')).toContain('npm run smoke')
  expect(scripts.smoke).toMatch(/node scripts\/smoke\.mjs$/)
})
