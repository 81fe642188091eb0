import { describe, expect, it } from 'vitest'
import { createMemoryDisk } from '../disk/memory-disk.ts'
import { formatPid, readRun, runFiles, startTicksOf } from './records.ts'

describe('a run of a command', () => {
  const files = runFiles('/run')
  async function read(written: { readonly pid?: string; readonly exit?: string }) {
    const disk = createMemoryDisk()
    await disk.makeDirectory('/run', 0o750)
    await disk.writeText(files.started, '1000\n')
    if (written.pid !== undefined) await disk.writeText(files.pid, written.pid)
    if (written.exit !== undefined) await disk.writeText(files.exit, written.exit)
    return readRun(files, disk)
  }
  const lost = { is: 'ended', code: 137, startedMs: 1_000, isLost: true }

  it('SYS-7 is running while its process exists', async () => {
    const pid = formatPid(process.pid, await startTicksOf(process.pid))
    expect(await read({ pid, exit: '' })).toEqual({ is: 'running', pid: process.pid, startedMs: 1_000 })
    expect(await read({ pid, exit: '3\n' })).toEqual({ is: 'ended', code: 3, startedMs: 1_000, isLost: false })
  })

  it('SYS-7 has ended if its pid is reused, unused or missing', async () => {
    expect(await read({ pid: formatPid(process.pid, '1') })).toEqual(lost)
    expect(await read({ pid: formatPid(2 ** 30, '1') })).toEqual(lost)
    expect(await read({})).toEqual(lost)
    expect(await read({ pid: '{"pid":' })).toEqual(lost)
  })

  it('SYS-7 has ended if its start time could not be read', async () => {
    expect(await startTicksOf(2 ** 30)).toBe('')
    expect(await read({ pid: formatPid(2 ** 30, '') })).toEqual(lost)
  })
})
