import { describe } from 'vitest'
import { clientContract } from '../client.contract.ts'
import { createHttpFixture } from './http.fixture.ts'

describe('the HTTP client', () => {
  clientContract(() => createHttpFixture({ history: { entriesMax: 50 } }))
})
