import { describe, expect, it } from 'vitest'
import { chooseBackend } from './choose-backend.ts'

const able = { canLoop: { available: true }, canMount: { available: true } } as const
const unable = {
  canLoop: { available: false, message: 'no rights.' },
  canMount: { available: false, message: 'no rights.' },
} as const

describe('chooseBackend', () => {
  it('SYS-6 chooses loop if the machine supports it, otherwise directory with the reason', () => {
    expect(chooseBackend({ requested: 'auto', existing: undefined, facts: able }).backend).toBe('loop')
    expect(chooseBackend({ requested: 'auto', existing: undefined, facts: unable })).toEqual({
      backend: 'directory',
      message: 'no rights.',
    })
    expect(chooseBackend({ requested: 'directory', existing: undefined, facts: able }).message).toBe(
      'the driver runs with --backend directory',
    )
  })

  it('SYS-6 chooses the backend of the existing volumes in the pool', () => {
    expect(chooseBackend({ requested: 'auto', existing: 'directory', facts: able }).backend).toBe('directory')
    expect(() => chooseBackend({ requested: 'auto', existing: 'loop', facts: unable })).toThrow(
      /does not work here: no rights/,
    )
    expect(() => chooseBackend({ requested: 'directory', existing: 'loop', facts: able })).toThrow(
      /Choose another pool/,
    )
  })

  it('SYS-6 rejects loop if the machine does not support it', () => {
    expect(() => chooseBackend({ requested: 'loop', existing: undefined, facts: unable })).toThrow(
      /use --backend directory/,
    )
  })
})
