import { describe } from 'vitest'
import { clientContract } from './client.contract.ts'
import { startHttpTrial } from './http.fixture.ts'

describe('the HTTP client', () => {
  clientContract(() => startHttpTrial({ history: { entriesMax: 50 } }))
})
