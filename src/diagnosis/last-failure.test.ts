import { describe, expect, it } from 'vitest'
import { diagnoseFailure } from './last-failure.ts'

const subject = { kind: 'Component', name: 'provisioner' }

describe('the last failure of a driver call', () => {
  it.each([
    ['DeadlineExceeded', 'create', 'false'],
    ['ResourceExhausted', 'create', 'true'],
    ['InvalidArgument', 'create', 'true'],
    ['OutOfRange', 'expand', 'true'],
    ['Unavailable', 'expand', 'false'],
  ] as const)('has the code %s and, for %s, isFinal %s', (code, operation, isFinal) => {
    const message = `failed to provision volume: rpc error: code = ${code} desc = no`
    const diagnosis = diagnoseFailure(message, operation, { subject })
    expect(diagnosis).toMatchObject({ state: 'failed', reason: 'LastAnswer', numbers: { code, isFinal } })
  })

  it('has no code if the message contains none', () => {
    expect(diagnoseFailure('the disk is gone', 'create', { subject })).toMatchObject({
      reason: 'LastFailure',
      numbers: {},
    })
  })
})
