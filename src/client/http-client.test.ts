import { describe } from 'vitest'
import { clientContract } from './client-contract.ts'
import { startHttpTrial } from './http-trial.ts'

describe('the HTTP client', () => {
  clientContract(() => startHttpTrial({ history: { entriesMax: 50 } }))
})
