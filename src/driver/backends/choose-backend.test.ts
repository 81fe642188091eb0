import { describe, expect, it } from 'vitest'
import { chooseBackend } from './choose-backend.ts'

const SUPPORTED = { canLoop: { available: true }, canMount: { available: true } } as const
const UNSUPPORTED = {
  canLoop: { available: false, message: 'no rights.' },
  canMount: { available: false, message: 'no rights.' },
} as const

describe('chooseBackend', () => {
  it('chooses loop if the machine supports it, otherwise directory with the reason', () => {
    expect(chooseBackend({ requestedBackend: 'auto', existingBackend: undefined, facts: SUPPORTED }).backend).toBe(
      'loop',
    )
    expect(chooseBackend({ requestedBackend: 'auto', existingBackend: undefined, facts: UNSUPPORTED })).toEqual({
      backend: 'directory',
      message: 'no rights.',
    })
    expect(chooseBackend({ requestedBackend: 'directory', existingBackend: undefined, facts: SUPPORTED }).message).toBe(
      'the driver runs with --backend directory',
    )
  })

  it('chooses the backend of the content of the pool', () => {
    expect(chooseBackend({ requestedBackend: 'auto', existingBackend: 'directory', facts: SUPPORTED }).backend).toBe(
      'directory',
    )
    expect(() => chooseBackend({ requestedBackend: 'auto', existingBackend: 'loop', facts: UNSUPPORTED })).toThrow(
      /does not work here: no rights/,
    )
    expect(() => chooseBackend({ requestedBackend: 'directory', existingBackend: 'loop', facts: SUPPORTED })).toThrow(
      /Choose another pool/,
    )
  })

  it('rejects loop if the machine does not support it', () => {
    expect(() => chooseBackend({ requestedBackend: 'loop', existingBackend: undefined, facts: UNSUPPORTED })).toThrow(
      /use --backend directory/,
    )
  })
})
