import { expect, it } from 'vitest'
import { silentLog } from '../../../base/log.ts'
import { reportNodes } from './serve-command.ts'

it.each([
  ['once as text on a terminal', { formatValue: undefined, isTerminal: true }, 1],
  ['to the output and to the log as text for a file', { formatValue: undefined, isTerminal: false }, 2],
  ['to the output and to the log as JSON', { formatValue: JSON.stringify, isTerminal: true }, 2],
] as const)('`up` writes each shortcoming of the nodes %s', (_name, target, count) => {
  const texts: string[] = []
  const log = { ...silentLog, warn: (_fields: object, message: string) => void texts.push(message) }
  const nodes = { names: ['node-1'], backend: 'directory', poolBytes: 1024, shortcomings: ['No limits.'], idle: [] }
  reportNodes({ nodes: nodes as never, startMs: 1 }, { ...target, log, write: (text) => void texts.push(text) })
  expect(texts.join('').split('No limits.').length - 1).toBe(count)
})
