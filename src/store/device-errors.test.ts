// Tests an LMDB store whose device fails with EIO: writes fail, the store does not open, and no acknowledged write is lost. The
// errors come from device-errors.c, which is compiled here and loaded into a child process.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleChild, type ChildProgram, runChild } from './testing/run-child.ts'

const REJECTED_MESSAGE =
  /^WriteRejectedError: nothing was written: .*store\.mdb: .*\(EIO\); the file system mounted at .* has \d+ KiB/
const CLOSED_MESSAGE = /^StoreClosedError: the store is closed: a write failed and may or may not have been persisted/

/** Whether the write that fails is alone in its batch, so that it is committed in the thread of the event loop. */
const BATCHES = ['alone', 'shared']

const skip = hasCompiler() || process.env.CI ? undefined : 'gcc is not installed'
let scratch: string
let program: ChildProgram

beforeAll(async () => {
  if (skip) return
  scratch = await mkdtemp(join(tmpdir(), 'stowage-eio-'))
  program = await bundleChild('device-error-child.ts')
  const source = join(import.meta.dirname, 'testing/device-errors.c')
  execFileSync('gcc', ['-shared', '-fPIC', '-o', join(scratch, 'errors.so'), source, '-ldl'])
})
afterAll(async () => {
  if (skip) return
  await program.remove()
  await rm(scratch, { recursive: true, force: true })
})

/** Returns the outcome of each step of the child. */
async function runWithFault(
  fault: string,
  childProgram = program,
  args: readonly string[] = [],
): Promise<Record<string, unknown>> {
  const settings = [`LD_PRELOAD=${join(scratch, 'errors.so')}`, `FAULT_FILE=${join(scratch, fault)}`]
  const dir = join(scratch, `store-${[fault, ...args].join('-')}`)
  const child = runChild(['env', ...settings, ...childProgram.command, dir, fault, ...args])
  expect(await child.whenExited(), child.errors()).toEqual({ code: 0, signal: null })
  return Object.fromEntries(child.lines.map((line) => JSON.parse(line)).map(({ step, outcome }) => [step, outcome]))
}

describe.skipIf(skip)(`a store on a device that fails with EIO${skip ? ` (${skip})` : ''}`, () => {
  it.each(['write', 'sync'].flatMap((fault) => BATCHES.map((batch) => [fault, batch] as const)))(
    'SYS-20 rejects the write if a %s fails (batch: %s), serves reads, and recovers',
    async (fault, batch) => {
      const outcomes = await runWithFault(fault, program, [batch])
      expect(outcomes).toMatchObject({ before: 'ok', read: 'ok', problem: 'the last write failed', after: 'ok' })
      expect(outcomes.during).toMatch(REJECTED_MESSAGE)
      expect(outcomes).toMatchObject({ keys: ['after', 'before'], damaged: 0 })
    },
  )

  it.each(BATCHES)('SYS-20 closes if the write that makes a commit valid fails (batch: %s)', async (batch) => {
    const outcomes = await runWithFault('meta-write', program, [batch])
    expect(outcomes).toMatchObject({ before: 'ok', problem: 'the store is closed', damaged: 0 })
    for (const step of ['during', 'read', 'after']) expect(outcomes[step], step).toMatch(CLOSED_MESSAGE)
    expect(outcomes.keys).toContain('before')
    expect(outcomes.keys).not.toContain('after')
  })

  it('SYS-20 does not open while it cannot be read', async () => {
    const outcomes = await runWithFault('read')
    expect(outcomes).toMatchObject({ before: 'ok', during: 'ok', after: 'ok', keys: ['after', 'before', 'during'] })
    expect(outcomes.open).toMatch(/store\.mdb cannot be read at byte 0 .*EIO.* The disk may be failing: restore/)
  })
})

describe.skipIf(skip)(`a page that a device can no longer read${skip ? ` (${skip})` : ''}`, () => {
  let child: ChildProgram
  beforeAll(async () => {
    child = await bundleChild('unreadable-page-child.ts')
  })
  afterAll(() => child.remove())

  it('SYS-20 is found by the scrub if it has values: their reads fail, other reads succeed, and the process continues', async () => {
    const outcomes = await runWithFault('value', child)
    expect(outcomes.damaged).toContain('k/150')
    expect((outcomes.damaged as string[]).length).toBeLessThan(10)
    expect(outcomes.reason).toMatch(/^page \d+: it cannot be read: EIO/)
    expect(outcomes['k/150']).toMatch(/^DamagedRecordError: the record of k\/150 at revision 151 is damaged: page/)
    expect(outcomes).toMatchObject({ 'k/1': 'ok', write: 'ok', passes: 3 })
    expect(outcomes.check).toMatchObject({ pages: 1, problem: expect.stringContaining('EIO') })
    expect(outcomes.open).toMatch(/cannot be read at byte \d+ \(page \d+\): EIO/)
  })

  it('SYS-20 fails the requests for its values that come before the scrub, and no others', async () => {
    const outcomes = await runWithFault('request', child)
    expect(outcomes['k/150']).toMatch(
      /^DamagedRecordError: .* at revision 151 is damaged: page \d+: it cannot be read: EIO/,
    )
    expect(outcomes).toMatchObject({ 'k/1': 'ok', write: 'ok', passes: 0 })
    expect(outcomes.damaged).toEqual(['k/150'])
  })

  it('SYS-20 does not end the process if a request reads it first', async () => {
    const truncatingChild = await bundleChild('truncated-file-child.ts')
    const outcomes = await runWithFault('truncated', truncatingChild)
    await truncatingChild.remove()
    const damaged = outcomes.damaged as string[]
    expect(outcomes.intact).toBeGreaterThan(50)
    expect(damaged.length).toBeGreaterThan(50)
    expect(damaged.length + (outcomes.intact as number)).toBe(300)
    for (const reason of damaged)
      expect(reason).toMatch(/^the record of k\/\d+ at revision \d+ is damaged: page \d+: .*the file ende?[ds] /)
  })

  it('SYS-20 is found by the scrub if it has headers, with the names of their objects', async () => {
    const outcomes = await runWithFault('header', child)
    expect(outcomes.damaged).toContain('k/150')
    expect((outcomes.damaged as string[]).length).toBeLessThan(150)
    expect(outcomes.reason).toMatch(/^page \d+: it cannot be read: EIO/)
    expect(outcomes).toMatchObject({ 'k/1': 'ok', write: 'ok', passes: 3 })
  })
})

function hasCompiler(): boolean {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
