// Public exports of encryption at rest.
export {
  formatSecretsConfiguration,
  generateKey,
  parseEncryptionConfiguration,
} from './configuration.ts'
export { createEncryption, type Encryption } from './encryption.ts'
export { findUndecryptable, rewriteStaleValues } from './rewrite.ts'
