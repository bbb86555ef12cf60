// rust_http: an HTTP server in Rust, a thread per connection, for stacks and categories. Every
// request does some arithmetic, and, with the fault lock, sleeps while it holds a mutex.
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::exit;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static TABLE_MUTEX: Mutex<u64> = Mutex::new(0);

#[inline(never)]
fn burn_cpu(steps: u64) -> u64 {
    let mut x: u64 = std::hint::black_box(88172645463325252);
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}

#[inline(never)]
fn wait_holding_lock(micros: u64) {
    let mut held = TABLE_MUTEX.lock().unwrap();
    *held += 1;
    thread::sleep(Duration::from_micros(micros));
}

fn serve(stream: TcpStream, steps: u64, lock_us: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
        }
        let x = burn_cpu(steps);
        if lock_us > 0 {
            wait_holding_lock(lock_us);
        }
        let body = format!("{x}\n");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        out.write_all((head + &body).as_bytes())?;
    }
}

fn wrong_usage(sentence: &str) -> ! {
    eprintln!("rust_http: {sentence}");
    exit(2)
}

fn number(text: Option<&str>) -> u64 {
    text.and_then(|t| t.parse().ok()).unwrap_or_else(|| wrong_usage("a number is missing"))
}

// The standard library has no signals; this is all that is needed of libc.
extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn _exit(status: i32) -> !;
}
const SIGTERM: i32 = 15;
extern "C" fn end(_number: i32) {
    unsafe { _exit(0) }
}

fn main() {
    unsafe { signal(SIGTERM, end) };
    let (mut port, mut work, mut more, mut lock_us) = (0, 20000, 0, 0);
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let value = words.next();
        match name.as_str() {
            "--port" => port = number(value.as_deref()),
            "--work" => work = number(value.as_deref()),
            "--fault" => {
                let text = value.unwrap_or_default();
                match text.split_once('=') {
                    Some(("cpu", n)) => more = number(Some(n)),
                    Some(("lock", n)) => lock_us = number(Some(n)),
                    _ => wrong_usage("faults are cpu=STEPS and lock=MICROSECONDS"),
                }
            }
            _ => wrong_usage(&format!("unknown option {name}")),
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port as u16)).unwrap_or_else(|error| {
        eprintln!("rust_http: cannot listen on 127.0.0.1:{port}: {error}");
        exit(1)
    });
    println!("listening {}", listener.local_addr().unwrap());
    for stream in listener.incoming().flatten() {
        let _ = thread::Builder::new()
            .name("connection".into())
            .spawn(move || serve(stream, work + more, lock_us));
    }
}
