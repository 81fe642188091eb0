import { describe, expect, it } from 'vitest'
import { firstTokenAuthenticator, type TokenAuthenticator } from './token-authenticator.ts'

const userOf = (name: string) => ({ user: { name, groups: [] } })
const staticAuthenticator: TokenAuthenticator = (token) => (token === 'static' ? userOf('ann') : undefined)
const rejectingAuthenticator: TokenAuthenticator = (token) =>
  token === 'expired' ? { rejection: 'expired' } : undefined
const acceptingAuthenticator: TokenAuthenticator = (_token, audiences) => ({ ...userOf('bob'), audiences })
const authenticate = firstTokenAuthenticator(
  [staticAuthenticator, rejectingAuthenticator, acceptingAuthenticator],
  ['api'],
)

describe('firstTokenAuthenticator', () => {
  it('SYS-9 returns the result of the first authenticator that recognizes the token', () => {
    expect(authenticate('static')).toMatchObject({ user: { name: 'ann' } })
    expect(authenticate('expired')).toEqual({ rejection: 'expired' })
    expect(authenticate('other')).toMatchObject({ user: { name: 'bob' }, audiences: ['api'] })
    expect(firstTokenAuthenticator([staticAuthenticator, rejectingAuthenticator], ['api'])('other')).toBeUndefined()
  })

  it('SYS-9 accepts a token without audiences only for the audiences of the API server', () => {
    expect(authenticate('static', ['vault', 'api'])).toMatchObject({ audiences: ['api'] })
    expect(authenticate('static', ['vault'])).toMatchObject({ rejection: expect.stringContaining('audiences') })
  })
})
