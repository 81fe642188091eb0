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

it('readFlags runs the driver on the first --node-id, and accepts volumes on all of them', () => {
  const read = (...flags: string[]) => readFlags([...ENDPOINT, ...flags]) as FakeProcessFlags
  const nodesOf = ({ settings }: FakeProcessFlags) => settings.nodes.map(({ id }) => id)
  expect(nodesOf(read())).toEqual(['node-1'])
  const flags = read('--node-id', 'a', '--node-id', 'b')
  expect(flags.nodeId).toBe('a')
  expect(nodesOf(flags)).toEqual(['a', 'b'])
})
