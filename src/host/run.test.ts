import { describe, expect, it } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { manualClock } from '../base/manual-clock.ts'
import { MissingToolError, ProgramFailedError } from './errors.ts'
import { createRun } from './run.ts'

const run = createRun({ clock: systemClock() })

describe('createRun', () => {
  it('passes arguments without a shell', async () => {
    const specialArgs = ['$(id)', '; rm -rf /', 'a b', '*', '`id`']
    const { stdout } = await run('printf', ['%s\n', ...specialArgs])
    expect(stdout).toBe(`${specialArgs.join('\n')}\n`)
  })

  it('passes stdin and returns stdout, stderr and the exit code', async () => {
    const script = 'cat; echo warning >&2; exit 3'
    const result = await run('sh', ['-c', script], { input: 'the input', okCodes: [0, 3] })
    expect(result).toEqual({ stdout: 'the input', stderr: 'warning\n', code: 3 })
  })

  it('tolerates a program that exits without reading stdin', async () => {
    expect((await run('true', [], { input: 'x'.repeat(1_000_000) })).code).toBe(0)
  })

  it('fails with the command, the exit code and stderr on one line', async () => {
    const failedRun = run('sh', ['-c', 'echo first >&2; echo second >&2; exit 4'])
    await expect(failedRun).rejects.toThrow(ProgramFailedError)
    await expect(failedRun).rejects.toThrow(/^"sh -c .*" exited with 4: first; second$/)
    await expect(failedRun).rejects.toMatchObject({ code: 4, program: 'sh' })
  })

  it('fails for a missing program, and names its package', async () => {
    await expect(run('mkfs.missing', [])).rejects.toThrow(MissingToolError)
    expect(new MissingToolError('mkfs.xfs').message).toBe(
      'The program "mkfs.xfs" is not installed on this node. Install the package "xfsprogs".',
    )
  })

  it('kills the program at the timeout and fails', async () => {
    const clock = manualClock()
    const lateRun = createRun({ clock })('sleep', ['600'], { timeoutMs: 5_000 })
    const rejection = expect(lateRun).rejects.toThrow('did not exit within 5000 ms and was killed')
    await clock.advance(5_000)
    await rejection
  })

  it('sets LC_ALL=C', async () => {
    expect((await run('sh', ['-c', 'echo $LC_ALL'])).stdout).toBe('C\n')
  })
})
