// Runs one turn of a bundle on a machine without Python, and prints what came of it as one JSON object.
//
//     runner turn FILE LOG      runs the case that FILE describes, and times it if it is right
//     runner who FILE LOG       asks OpenCL's device who it is
//     runner peaks FILE LOG     measures what it does at best
//     runner quote FILE         prints a file as a JSON string
//
// The work is done by a process of its own, which is killed when it is silent for longer than the file allows. What
// drivers print goes to LOG, whose newest part is in the object. Judging is left to the host: `harness.bundle.told`.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "numbers.h"
#include "program.h"
#include "quote.h"
#include "tell.h"
#include "timing.h"
#include "tvm.h"

enum { NEWEST_OF_LOG = 4096, END_MS = 5000 };

static void ask_names(TVMFFIAny names[2]) {
  const TVMFFIAny attribute = global("runtime.GetDeviceAttr");
  TVMFFIAny args[3] = {an_int(kDLOpenCL), an_int(0), an_int(EXIST)};
  if (call(attribute, args, 3).v_int64 == 0) tell_broken("TVM's runtime finds no OpenCL device", "is there a driver?");
  for (int which = 0; which < 2; ++which) {
    args[2] = an_int(which ? DRIVER_VERSION : DEVICE_NAME);
    names[which] = call(attribute, args, 3);
  }
}

static void tell_who(const Case* packed) {
  TVMFFIAny names[2];
  tell_doing("opening OpenCL");
  ask_names(names);
  for (int which = 0; which < 2; ++which) {
    const TVMFFIByteArray name = content_of(&names[which]);
    tell_text(which ? "driver_version" : "name", name.data, name.size);
  }
  if (packed->probe == NULL) return;
  tell_doing("asking the probe");
  const TVMFFIAny told = ask(load_module(packed->probe), "describe");
  const TVMFFIByteArray json = content_of(&told);
  tell_text("describe", json.data, json.size);
}

static void tell_peaks(const Case* packed) {
  TVMFFIAny names[2];
  if (packed->probe == NULL) return;
  ask_names(names);
  tell_doing("measuring what the device can do at best");
  const TVMFFIAny told = call(member(load_module(packed->probe), "peaks"), names, 2);
  const TVMFFIByteArray json = content_of(&told);
  tell_text("peaks", json.data, json.size);
}

static void run_turn(const Case* packed) {
  Program program;
  memset(&program, 0, sizeof(program));
  if (packed->probe != NULL) {
    tell_doing("loading the probe");
    program.probe = load_module(packed->probe);
    release(ask(program.probe, "count_programs"));
  }
  tell_doing("loading");
  load_program(&program, packed);
  tell_doing("running");
  const int right = run_once(&program);
  tell_json("near", right ? "true" : "false", right ? 4 : 5);
  if (packed->probe != NULL) {
    const TVMFFIAny told = ask(program.probe, "programs");
    const TVMFFIByteArray json = content_of(&told);
    tell_text("programs", json.data, json.size);
  }
  if (right) measure(&program);  // a wrong answer gets no time
}

static _Noreturn void work(const char* what, const Case* packed) {
  tell_doing("loading TVM's runtime");
  load_runtime(packed);
  if (strcmp(what, "who") == 0) tell_who(packed);
  if (strcmp(what, "peaks") == 0) tell_peaks(packed);
  if (strcmp(what, "turn") == 0) run_turn(packed);
  tell_json("done", "true", 4);
  _exit(0);  // a driver's own clean-up has been seen to hang
}

/// Takes what the process tells until it ends; whether it fell silent for too long.
static int listen_to(int from, double timeout_s, Text* told) {
  struct pollfd waited = {.fd = from, .events = POLLIN};
  char piece[65536];
  for (;;) {
    if (poll(&waited, 1, (int)(1e3 * timeout_s)) <= 0) return 1;
    const ssize_t got = read(from, piece, sizeof(piece));
    if (got <= 0) return 0;
    text_append(told, piece, (size_t)got);
  }
}

/// How the process ended, as `waitpid` says it. One that has closed its pipe and stays is killed.
static int ending_of(pid_t process) {
  int status = 0;
  for (int waited_ms = 0; waitpid(process, &status, WNOHANG) == 0; waited_ms += 10) {
    if (waited_ms >= END_MS) kill(-process, SIGKILL);
    if (waited_ms >= 2 * END_MS) break;  // a driver may hold it in the kernel
    poll(NULL, 0, 10);
  }
  return status;
}

static void print_object(Text* told, int hung, int status, const char* log) {
  Text json = {0};
  text_add(&json, "{");
  size_t begun = 0;
  for (size_t i = 0; i < told->size; ++i) {  // a line that was cut off is left out
    if (told->data[i] != '\n') continue;
    text_append(&json, told->data + begun, i - begun);
    text_add(&json, ", ");
    begun = i + 1;
  }
  const Text said = read_file(log, NEWEST_OF_LOG);
  text_add(&json, "\"log\": ");
  quote(&json, said.data ? said.data : "", said.size);
  text_add(&json, hung ? ", \"hung\": true" : ", \"hung\": false");
  text_add(&json, ", \"signal\": ");
  text_add_number(&json, !hung && WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0);
  text_add(&json, ", \"code\": ");
  text_add_number(&json, !hung && WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 0);
  text_add(&json, "}");
  if (json.failed || write_all(1, json.data, json.size) != 0) _exit(4);
}

static int watched(const char* what, const char* file, const char* log) {
  static Case packed;
  int ends[2];
  read_case(file, &packed);
  const int printed = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (printed < 0 || pipe(ends) != 0) tell_broken("the log cannot be written", log);
  const pid_t process = fork();
  if (process < 0) tell_broken("no process can be started", what);
  if (process == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(printed, 1);
    dup2(printed, 2);
    close(ends[0]);
    tell_to(ends[1]);
    work(what, &packed);
  }
  setpgid(process, process);
  close(ends[1]);
  Text told = {0};
  const int hung = listen_to(ends[0], packed.protocol.timeout_s, &told);
  if (hung) kill(-process, SIGKILL);
  print_object(&told, hung, ending_of(process), log);
  return 0;
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "quote") == 0) {
    const Text content = read_file(words[2], 0);
    Text json = {0};
    quote(&json, content.data ? content.data : "", content.size);
    return write_all(1, json.data, json.size) != 0;
  }
  if (count != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever kills the script ends this, too
  return watched(words[1], words[2], words[3]);
}
