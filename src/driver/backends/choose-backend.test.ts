import { describe, expect, it } from 'vitest'
import { chooseBackend } from './choose-backend.ts'

const able = { canLoop: { yes: true }, canMount: { yes: true } } as const
const unable = {
  canLoop: { yes: false, because: 'no rights.' },
  canMount: { yes: false, because: 'no rights.' },
} as const

describe('the backend', () => {
  it('SYS-6 is loop where the machine allows it and directory where not, with the reason', () => {
    expect(chooseBackend({ wanted: 'auto', holds: undefined, facts: able }).backend).toBe('loop')
    expect(chooseBackend({ wanted: 'auto', holds: undefined, facts: unable })).toEqual({
      backend: 'directory',
      because: 'no rights.',
    })
    expect(chooseBackend({ wanted: 'directory', holds: undefined, facts: able }).because).toBe(
      'the driver runs with --backend directory',
    )
  })

  it('SYS-6 stays what the volumes in the pool were made with', () => {
    expect(chooseBackend({ wanted: 'auto', holds: 'directory', facts: able }).backend).toBe('directory')
    expect(() => chooseBackend({ wanted: 'auto', holds: 'loop', facts: unable })).toThrow(
      /does not work here: no rights/,
    )
    expect(() => chooseBackend({ wanted: 'directory', holds: 'loop', facts: able })).toThrow(/Choose another pool/)
  })

  it('SYS-6 a loop backend that was asked for and is not possible is refused', () => {
    expect(() => chooseBackend({ wanted: 'loop', holds: undefined, facts: unable })).toThrow(/use --backend directory/)
  })
})
