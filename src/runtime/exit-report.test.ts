import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { reportExit } from './exit-report.ts'

function fixture() {
  const exitingProcess = new EventEmitter()
  const texts: string[] = []
  return {
    report: reportExit(exitingProcess, (text) => void texts.push(text)),
    texts,
    exit: (code: number) => exitingProcess.emit('exit', code),
  }
}

it('reports an exit before the command has ended, with its code', () => {
  const { texts, exit } = fixture()
  exit(13)
  expect(texts).toEqual([
    'stowage exits with code 13: the event loop is empty, but the command has not ended; please report this as a bug\n',
  ])
})

it('reports the reason that was set last', () => {
  const { report, texts, exit } = fixture()
  report.setReason('the command did not stop within 30 s')
  exit(1)
  expect(texts).toEqual(['stowage exits with code 1: the command did not stop within 30 s\n'])
})

it('reports no exit after the command has ended', () => {
  const { report, texts, exit } = fixture()
  report.finish()
  exit(0)
  expect(texts).toEqual([])
})

it('exits, even though standard error is closed', () => {
  const exitingProcess = new EventEmitter()
  reportExit(exitingProcess, () => {
    throw new Error('EPIPE')
  })
  expect(() => exitingProcess.emit('exit', 1)).not.toThrow()
})
