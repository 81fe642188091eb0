import { expect, it } from 'vitest'
import { type FakeProcessFlags, readFlags } from './flags.ts'

const ENDPOINT = ['--endpoint', 'unix:///x.sock']

it('readFlags accepts abort and goOn for --when-busy, and rejects other values', () => {
  const whenBusyOf = (...flags: string[]) => (readFlags([...ENDPOINT, ...flags]) as FakeProcessFlags).settings.whenBusy
  expect(whenBusyOf()).toBe('abort')
  expect(whenBusyOf('--when-busy', 'abort')).toBe('abort')
  expect(whenBusyOf('--when-busy', 'goOn')).toBe('goOn')
  expect(() => whenBusyOf('--when-busy', 'goon')).toThrow('--when-busy must be abort or goOn, not "goon"')
})
