// Entry point of the controllers with which nodes join: the one that approves and signs CertificateSigningRequests, and those of
// bootstrap tokens.
export { createBootstrapSigner } from './bootstrap-signer.ts'
export { createCertificateController, type Requester } from './certificate-controller.ts'
export type { NodeCertificateRight } from './plan-request.ts'
export { createTokenCleaner } from './token-cleaner.ts'
