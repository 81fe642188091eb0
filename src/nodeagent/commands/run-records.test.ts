import { describe, expect, it } from 'vitest'
import { readStartTicks } from '../../host/process-identity.ts'
import { createMemoryDisk } from '../disk/memory-disk.ts'
import { formatPid, readRun, runFiles } from './run-records.ts'

describe('readRun', () => {
  const files = runFiles('/run')
  async function readRecords(contents: { readonly pid?: string; readonly exit?: string; readonly start?: string }) {
    const disk = createMemoryDisk()
    await disk.makeDirectory('/run', 0o750)
    await disk.writeText(files.started, '1000 20000\n')
    if (contents.pid !== undefined) await disk.writeText(files.pid, contents.pid)
    if (contents.start !== undefined) await disk.writeText(files.start, contents.start)
    if (contents.exit !== undefined) await disk.writeText(files.exit, contents.exit)
    return readRun(files, disk)
  }
  const TIMES = { startedMs: 1_000, restartDelayMs: 20_000 }
  const LOST_RUN = { is: 'ended', code: 137, isLost: true, isKilled: false, ...TIMES }

  it('returns running until the process has written its exit code', async () => {
    const pid = formatPid(process.pid, await readStartTicks(process.pid))
    const ended = { is: 'ended', code: 3, isLost: false, isKilled: false, ...TIMES }
    expect(await readRecords({ pid, exit: '' })).toEqual({ is: 'running', pid: process.pid, ...TIMES })
    expect(await readRecords({ pid, exit: '3\n' })).toEqual(ended)
    expect(await readRecords({ pid, exit: '3 5000\n' })).toEqual({ ...ended, endedMs: 5_000 })
  })

  it('returns starting until the command runs, and the reason if it cannot', async () => {
    const pid = formatPid(process.pid, await readStartTicks(process.pid))
    expect(await readRecords({ pid, exit: '', start: '' })).toMatchObject({ is: 'starting' })
    expect(await readRecords({ pid, exit: '', start: 'ok\n' })).toMatchObject({ is: 'running' })
    expect(await readRecords({ pid, exit: '127 5\n', start: 'not found\n' })).toMatchObject({
      is: 'ended',
      code: 127,
      startError: 'not found',
    })
  })

  it('returns a lost run if the PID is reused, unused, missing or unreadable', async () => {
    expect(await readRecords({ pid: formatPid(process.pid, '1') })).toEqual(LOST_RUN)
    expect(await readRecords({ pid: formatPid(2 ** 30, '1') })).toEqual(LOST_RUN)
    expect(await readRecords({})).toEqual(LOST_RUN)
    expect(await readRecords({ pid: '{"pid":' })).toEqual(LOST_RUN)
    expect(await readRecords({ pid: 'null' })).toEqual(LOST_RUN)
    expect(await readRecords({ pid: `{"pid":"${process.pid}","startTicks":1}` })).toEqual(LOST_RUN)
  })

  it('returns a lost run for PID 1, whose process group is every process', async () => {
    expect(await readRecords({ pid: formatPid(1, await readStartTicks(1)) })).toEqual(LOST_RUN)
  })

  it('returns a lost run if the start time of the process was not recorded', async () => {
    expect(await readStartTicks(2 ** 30)).toBe('')
    expect(await readRecords({ pid: formatPid(2 ** 30, '') })).toEqual(LOST_RUN)
  })
})
