import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { probeHost } from './probe.ts'
import { createRun } from './run.ts'

let poolDir: string
beforeEach(async () => {
  poolDir = await mkdtemp(join(tmpdir(), 'stowage-probe-'))
})
afterEach(() => rm(poolDir, { recursive: true, force: true }))

it('probeHost removes the files of this probe and of a killed one', async () => {
  const leftoverDir = join(poolDir, '.stowage-probe-killed')
  await mkdir(leftoverDir)
  await writeFile(join(leftoverDir, 'loop'), 'x')
  await writeFile(join(poolDir, 'other-file'), 'x')
  const facts = await probeHost({ poolDir, clock: systemClock() })
  expect(await readdir(poolDir)).toEqual(['other-file'])
  if (facts.canLoop.available) {
    const { stdout } = await createRun({ clock: systemClock() })('losetup', ['--list', '--output', 'BACK-FILE'])
    expect(stdout).not.toContain(poolDir)
  }
})

it('probeHost returns a reason for every missing ability', async () => {
  const facts = await probeHost({ poolDir, clock: systemClock() })
  const abilities = [
    ...[facts.canLoop, facts.canMount, facts.canReflink, facts.canGrowExt4Online],
    ...Object.values(facts.filesystems),
    ...Object.values(facts.tools),
  ]
  expect(abilities.filter((ability) => !ability.available && ability.message.split(' ').length < 4)).toEqual([])
})
