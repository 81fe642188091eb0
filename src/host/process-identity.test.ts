import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { identifyProcess, isRunning, readStartTicks, signalProcess } from './process-identity.ts'

it('isRunning recognizes a process, but not one with the same PID and another start time or boot', async () => {
  const identity = await identifyProcess(process.pid)
  expect(isRunning(identity)).toBe(true)
  expect(isRunning({ ...identity, startTicks: '1' })).toBe(false)
  expect(isRunning({ ...identity, bootId: 'earlier' })).toBe(false)
  expect(isRunning({ ...identity, startTicks: '' })).toBe(false)
})

it('readStartTicks returns an empty string for a PID that no process has', async () => {
  expect(await readStartTicks(2 ** 30)).toBe('')
})

it('signalProcess sends a signal to the process, but not to one that has reused the PID', async () => {
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  const identity = await identifyProcess(child.pid!)
  expect(signalProcess({ ...identity, startTicks: `${Number(identity.startTicks) - 1}` }, 'SIGKILL')).toBe(false)
  expect(isRunning(identity)).toBe(true)
  const whenExited = once(child, 'exit')
  expect(signalProcess(identity, 'SIGKILL')).toBe(true)
  await whenExited
  expect(signalProcess(identity, 'SIGKILL')).toBe(false)
})
