import { expect, it } from 'vitest'
import { VolumeTurns } from './volume-turns.ts'

it('SYS-18 attachments of one volume take turns, and whoever waited is named when it is over', () => {
  const turns = new VolumeTurns()
  expect(turns.take('v', 'a')).toBe(true)
  expect([turns.take('v', 'b'), turns.take('v', 'c'), turns.take('w', 'd')]).toEqual([false, false, true])
  expect(turns.release('v')).toEqual(['b', 'c'])
  expect(turns.take('v', 'b')).toBe(true)
  expect(turns.release('v')).toEqual([])
})
