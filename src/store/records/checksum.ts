// The checksum of stored records: CRC-32 as zlib computes it, which Node.js provides natively. It detects every change of up
// to 32 consecutive bits, and of up to three bits anywhere in a record of up to 11 KiB.
import { crc32 } from 'node:zlib'

/**
 * Returns the checksum as a signed integer, which V8 stores without an allocation. `previousChecksum` is the checksum
 * of the bytes before these.
 */
export const checksumOf = (bytes: Uint8Array, previousChecksum = 0): number => crc32(bytes, previousChecksum >>> 0) | 0
