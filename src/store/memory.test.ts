import { describe } from 'vitest'
import { storeContract } from './contract.ts'
import { memoryMedium, openMemoryStore } from './memory.ts'

describe('memory store', () => {
  storeContract(async () => {
    const medium = memoryMedium()
    return (options) => openMemoryStore({ ...options, medium })
  })
})
