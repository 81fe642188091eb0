// Runs the store contract on the in-memory store.
import { describe } from 'vitest'
import { memoryMedium, openMemoryStore } from './memory.ts'
import { storeContract } from './store.contract.ts'

describe('memory store', () => {
  storeContract(async () => {
    const medium = memoryMedium()
    return (options) => openMemoryStore({ ...options, medium })
  })
})
