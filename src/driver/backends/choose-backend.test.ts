import { describe, expect, it } from 'vitest'
import { chooseBackend } from './choose-backend.ts'

const able = { canLoop: { yes: true }, canMount: { yes: true } } as const
const unable = {
  canLoop: { yes: false, because: 'no rights.' },
  canMount: { yes: false, because: 'no rights.' },
} as const

describe('the backend', () => {
  it('SYS-6 is loop if the machine supports it, otherwise directory with the reason', () => {
    expect(chooseBackend({ wanted: 'auto', holds: undefined, facts: able }).backend).toBe('loop')
    expect(chooseBackend({ wanted: 'auto', holds: undefined, facts: unable })).toEqual({
      backend: 'directory',
      because: 'no rights.',
    })
    expect(chooseBackend({ wanted: 'directory', holds: undefined, facts: able }).because).toBe(
      'the driver runs with --backend directory',
    )
  })

  it('SYS-6 is that of the existing volumes in the pool', () => {
    expect(chooseBackend({ wanted: 'auto', holds: 'directory', facts: able }).backend).toBe('directory')
    expect(() => chooseBackend({ wanted: 'auto', holds: 'loop', facts: unable })).toThrow(
      /does not work here: no rights/,
    )
    expect(() => chooseBackend({ wanted: 'directory', holds: 'loop', facts: able })).toThrow(/Choose another pool/)
  })

  it('SYS-6 cannot be loop if the machine does not support it', () => {
    expect(() => chooseBackend({ wanted: 'loop', holds: undefined, facts: unable })).toThrow(/use --backend directory/)
  })
})
